import { z } from 'zod'
import { deleteSecret, listSecrets, putSecret, type Secret } from '../../db/access/secrets.ts'
import { pollAgainWith } from '../../db/incoming/polls.ts'
import { type Issue, invalid } from '../../db/model/errors.ts'
import { SECRETS } from '../../workflows/shared/limits.ts'
import { deletion } from '../http/deletion.ts'
import { ENV_NAME, ENV_NAME_RULE } from '../http/env-name.ts'
import { listEnvelope, pageByName, pageControls, presentList } from '../http/list-query.ts'
import { type AppRoute, appRoute } from '../http/route.ts'

const params = z.object({ name: z.string() })

const value = z
  .string()
  .max(SECRETS.characters)
  .refine((text) => text.trim().length >= SECRETS.least, {
    message: `must have at least ${SECRETS.least} characters: a shorter value cannot be masked wherever it occurs`,
    params: { hint: 'keep a short value that is not a secret in `env` (PATCH /app/organization)' },
  })
  .meta({ description: 'Never returned.', writeOnly: true })

const secretSchema = z
  .object({
    object: z.literal('secret'),
    name: z.string(),
    created_at: z.iso.datetime(),
    updated_at: z.iso.datetime(),
  })
  .meta({ id: 'Secret' })

const present = (secret: Secret) => ({ object: 'secret' as const, ...secret })

/** The secrets of the organization: written and deleted here, read only by nodes that call other services. */
export const secretRoutes: AppRoute[] = [
  appRoute({
    method: 'GET',
    path: '/secrets',
    role: 'admin',
    id: 'listSecrets',
    tag: 'Secrets',
    summary: 'List secrets',
    description: 'Sorted by name, without the values.',
    query: z.strictObject(pageControls),
    response: { status: 200, schema: listEnvelope(secretSchema) },
    handler: async ({ query, tenant }) =>
      presentList(pageByName('secrets', (await tenant(listSecrets)).map(present), query)),
  }),
  appRoute({
    method: 'PUT',
    path: '/secrets/{name}',
    role: 'admin',
    id: 'putSecret',
    tag: 'Secrets',
    summary: 'Create or replace a secret',
    description: `Stores the value encrypted; it can be used and replaced, but not read again. Nodes that call other services read it as \`{{ secrets.<name> }}\`, from their next attempt on. Everyone who may author or test workflows can send it to any service. The value is masked in the results of nodes that use it, also as part of JSON or a URL, in base64 and in hexadecimal; a value of ${SECRETS.distinctive} characters or more is masked in the results of all nodes that call other services. An organization has at most ${SECRETS.count} secrets, of ${SECRETS.total} bytes together.`,
    params,
    // The stored hash of a request would confirm a guessed secret.
    idempotent: false,
    secretBody: true,
    body: z.strictObject({ value }).meta({ id: 'SecretPut' }),
    example: { value: 'example-token-of-the-service' },
    response: { status: 200, schema: secretSchema },
    otherIssues: async ({ params }) => nameIssues(params.name),
    handler: async ({ params: { name }, body, deps, tenant }) => {
      const issues = nameIssues(name)
      if (issues.length > 0) throw invalid(issues)
      return tenant(async (tx) => {
        const secret = await putSecret(tx, deps.secretsKey, name, body.value)
        await pollAgainWith(tx, name)
        return present(secret)
      })
    },
  }),
  appRoute({
    method: 'DELETE',
    path: '/secrets/{name}',
    role: 'admin',
    id: 'deleteSecret',
    tag: 'Secrets',
    summary: 'Delete a secret',
    description: 'A node that reads it fails from its next attempt on, with `unknown_secret`.',
    params,
    response: deletion('secret', { name: z.string() }),
    handler: async ({ params: { name }, tenant }) => {
      await tenant((tx) => deleteSecret(tx, name))
      return { object: 'secret', name, deleted: true }
    },
  }),
]

const nameIssues = (name: string): Issue[] =>
  ENV_NAME.test(name) ? [] : [{ loc: ['path', 'name'], msg: ENV_NAME_RULE, type: 'invalid_format' }]
