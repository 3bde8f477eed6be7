import { z } from 'zod'
import type { People } from '../effects/people.ts'
import { listOf, members, TEXT, type ValueType } from '../language/value-types.ts'
import { type Authored, defineNode } from './define.ts'

/** The most people of a rotation. */
const MOST = 200

const operations = z.discriminatedUnion('operation', [
  z.strictObject({
    operation: z.literal('get'),
    id: z
      .uuid()
      .nullable()
      .describe('The id of a user: `"{{ trigger.record.owner_id }}"`. Null is the error `no_such_user`.'),
  }),
  z.strictObject({ operation: z.literal('find'), email: z.email() }),
  z.strictObject({
    operation: z.literal('list'),
    role: z.enum(['owner', 'admin', 'member']).optional(),
  }),
  z.strictObject({
    operation: z.literal('next'),
    rotation: z
      .string()
      .min(1)
      .max(100)
      .describe(
        'The name of the rotation, shared by all workflows; its state is the key value `rotation:<name>`.',
      ),
    among: z
      .array(z.union([z.uuid(), z.email()]))
      .min(1)
      .max(MOST)
      .optional()
      .describe('Ids or email addresses of users; those of no member are passed over. Default: all members.'),
  }),
])

export const peopleNode = defineNode({
  type: 'people',
  engine: 14,
  category: 'records',
  title: 'People',
  alsoCalled: ['user', 'users', 'owner', 'member', 'members', 'team', 'round_robin', 'rotate', 'assign'],
  description:
    'Users: `get` by id, such as an `owner_id`, `find` by email, `list`; `next` takes turns (round robin). Outputs: {id, name, email, role}; list `{data}`; nobody: the error `no_such_user`.',
  effect: ({ operation }) => (operation === 'next' ? 'write' : 'read'),
  effects: ['people'],
  // `GET /v1/users` shows no email addresses: a key reads them only if it could save a workflow that does.
  scopes: () => ['workflows:author'],
  config: operations,
  output: z.record(z.string(), z.unknown()),
  outputType,
  handles: () => [{ name: 'success', description: 'The user exists.' }],
  example: {
    config: { operation: 'next', rotation: 'leads' },
    output: {
      id: '019a0000-0000-7000-8000-000000000001',
      name: 'Ada',
      email: 'ada@example.com',
      role: 'member',
    },
  },
  async run(config, { people }) {
    return { output: await operate(config, people) }
  },
})

async function operate(
  config: z.output<typeof operations>,
  people: People,
): Promise<Record<string, unknown>> {
  switch (config.operation) {
    case 'get':
      return { ...(await people.get(config.id ?? '')) }
    case 'find':
      return { ...(await people.find(config.email)) }
    case 'list':
      return { data: await people.list(config.role) }
    case 'next':
      return { ...(await people.next(config.rotation, config.among)) }
  }
}

const USER = members({ id: TEXT, name: TEXT, email: TEXT, role: TEXT })

function outputType({ operation }: Authored): ValueType {
  return operation === 'list' ? members({ data: listOf(USER) }) : USER
}

/** The hint to read the email address of the user or contact whose id a placeholder is. */
export const addressHint = (id: string): string =>
  `read the address by a node before: \`${
    /contact/.test(id)
      ? `{type: crm_manager, config: {operation: get, entity: contacts, id: "${id}"}}`
      : `{type: people, config: {operation: get, id: "${id}"}}`
  }\`, and write \`{{ nodes.<its id>.output.email }}\``
