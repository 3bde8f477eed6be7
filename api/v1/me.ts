import { z } from 'zod'
import { PLANS } from '../../db/access/plans.ts'
import { type Route, route } from '../http/route.ts'
import { SCOPES } from '../http/scopes.ts'

const me = z
  .object({
    object: z.literal('key'),
    id: z.uuid(),
    name: z.string(),
    scopes: z.array(z.enum(SCOPES)),
    organization: z.object({
      id: z.uuid(),
      name: z.string(),
      plan: z.enum(PLANS),
      currency: z.string().meta({ description: 'ISO 4217' }),
      timezone: z.string().meta({ description: 'IANA' }),
    }),
  })
  .meta({ id: 'KeyInUse' })

const scopes = z
  .object({
    object: z.literal('list'),
    data: z.array(
      z.object({
        object: z.literal('scope'),
        scope: z.enum(SCOPES),
        implies: z.array(z.enum(SCOPES)),
      }),
    ),
  })
  .meta({ id: 'ScopeList' })

export const meRoutes: Route[] = [
  route({
    method: 'GET',
    path: '/me',
    scope: 'any',
    id: 'getMe',
    tag: 'Account',
    summary: 'What this key is',
    description: 'The key, its scopes and its organization.',
    response: { status: 200, schema: me },
    handler: async ({ caller }) => ({
      object: 'key',
      id: caller.id,
      name: caller.name,
      scopes: [...caller.scopes],
      organization: caller.organization,
    }),
  }),
  route({
    method: 'GET',
    path: '/scopes',
    scope: 'any',
    id: 'listScopes',
    tag: 'Account',
    summary: 'All scopes',
    description: 'Every scope that a key can have, with the scope that it implies.',
    response: { status: 200, schema: scopes },
    handler: async () => ({
      object: 'list',
      data: SCOPES.map((scope) => ({ object: 'scope', scope, implies: implied(scope) })),
    }),
  }),
]

function implied(scope: string): string[] {
  const [resource, level] = scope.split(':')
  return level === 'read' ? [] : [`${resource}:read`]
}
