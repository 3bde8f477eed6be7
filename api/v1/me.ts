import { z } from 'zod'
import { PLANS } from '../../db/access/plans.ts'
import { listEnvelope, wholeList } from '../http/list-query.ts'
import { type Route, route } from '../http/route.ts'
import { SCOPES } from '../http/scopes.ts'

const me = z
  .object({
    object: z.enum(['key', 'user']).describe('`user` for a session, on /app/v1.'),
    id: z.uuid(),
    name: z.string(),
    scopes: z.array(z.enum(SCOPES)),
    organization: z
      .object({
        id: z.uuid(),
        name: z.string(),
        plan: z.enum(PLANS),
        currency: z.string().meta({ description: 'An ISO 4217 code.' }),
        timezone: z.string().meta({ description: 'An IANA name.' }),
      })
      .meta({ id: 'CurrentOrganization' }),
  })
  .meta({ id: 'CurrentKey' })

const scope = z
  .object({
    object: z.literal('scope'),
    scope: z.enum(SCOPES),
    implies: z.array(z.enum(SCOPES)),
  })
  .meta({ id: 'Scope' })

export const meRoutes: Route[] = [
  route({
    method: 'GET',
    path: '/me',
    scope: 'any',
    id: 'getMe',
    tag: 'Account',
    summary: 'Retrieve the current key',
    description:
      'Returns the key of the request, with its scopes and organization. With a session: its user, with the scopes of the role.',
    response: { status: 200, schema: me },
    handler: async ({ caller }) => ({
      object: caller.type,
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
    summary: 'List scopes',
    description: 'Lists the scopes that a key can have, with the scopes that each implies.',
    response: { status: 200, schema: listEnvelope(scope) },
    handler: async () =>
      wholeList(SCOPES.map((scope) => ({ object: 'scope' as const, scope, implies: implied(scope) }))),
  }),
]

function implied(scope: string): string[] {
  const [resource, level] = scope.split(':')
  const read = SCOPES.filter((one) => one === `${resource}:read`)
  return level === 'read' ? [] : read
}
