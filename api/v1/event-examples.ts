import { z } from 'zod'
import { recordExample } from '../../db/model/records/examples.ts'
import type { KindEvent } from '../../db/model/records/kind.ts'
import { kindNames, kinds } from '../../db/model/records/kinds/index.ts'
import { fieldsSchema } from '../../db/model/records/schemas.ts'
import { LIST_CAUSES } from '../../db/records/lists/settle.ts'
import type { CatalogueEvent } from '../../workflows/shared/events.ts'
import { approvalShape } from '../approvals/shape.ts'

const ID = '01890a5d-ac96-774b-bcce-b302099a8057'
const TIME = '2026-01-31T09:30:00.000Z'

const run = z.object({
  id: z.uuid().describe('The run.'),
  object: z.literal('run'),
  workflow_id: z.uuid(),
  workflow_name: z.string(),
  workflow_version: z.int(),
  status: z.string(),
  trigger: z.string(),
  outputs: z.record(z.string(), z.unknown()).nullable(),
  error: z
    .object({
      code: z.string(),
      message: z.string(),
      node_id: z.string().optional(),
      details: z.record(z.string(), z.unknown()).optional(),
    })
    .nullable(),
  created_at: z.iso.datetime(),
})

// A new schema object: `approvalShape` itself would become a reference into the OpenAPI document.
const approval = z.object({
  ...approvalShape.shape,
  link: z
    .string()
    .nullable()
    .describe('The link to decide the approval; whoever has the link can. Null in `approval.answered`.'),
})

const webhook = z.object({
  id: z.uuid().describe('The outgoing webhook.'),
  object: z.literal('outgoing_webhook'),
  name: z.string(),
  url: z.string(),
  status: z.literal('Inactive'),
  status_reason: z.string(),
  failing_since: z.iso.datetime().nullable(),
})

const membership = z.object({
  id: z.uuid().describe('The record.'),
  object: z.literal('list_membership'),
  list: z.object({ id: z.uuid(), name: z.string() }),
  entity: z.enum(kindNames),
  cause: z
    .enum(LIST_CAUSES)
    .describe(
      '`members`: it was added or removed; `record`: it changed; `comparison`: all records were compared with the filter.',
    ),
  record: z.record(z.string(), z.unknown()).describe('The record, also a deleted one.'),
})

const isMerge = ({ name }: CatalogueEvent) => name.endsWith('.merged')
const mergedFrom = { merged_from: z.uuid().describe('The merged duplicate, which no longer exists.') }

/** The data of a custom event, which only nodes of workflows raise, such as `invoice.paid`. */
const custom = z.looseObject({ id: z.string().optional() })
const customExample = { id: 'INV-2026-7', amount: '1250.00', currency: 'EUR' }

/** The record kind of the event's subject. Undefined for runs and custom subjects. */
const kindOf = ({ subject }: CatalogueEvent) => kindNames.find((kind) => kinds[kind].object === subject)

/** The JSON Schema of `data`. */
export function eventSchema(event: CatalogueEvent): Record<string, unknown> {
  const kind = kindOf(event)
  // A new schema object: the kind's own schema would become a reference into the OpenAPI document.
  const shape = kind && { ...fieldsSchema(kind).shape, ...(isMerge(event) ? mergedFrom : {}) }
  const schema = shape ? z.object(shape) : (OTHERS[event.subject]?.schema ?? custom)
  return z.toJSONSchema(schema, { io: 'output', unrepresentable: 'any' })
}

/** An example of `data`. */
export function eventExample(event: CatalogueEvent): Record<string, unknown> {
  const kind = kindOf(event)
  if (!kind) return OTHERS[event.subject]?.example(event) ?? customExample
  return {
    ...recordExample(kinds[kind], kindEventOf(event)?.example),
    version: event.name.endsWith('.created') ? 1 : 2,
    ...(isMerge(event) ? { merged_from: '01890a5d-ac96-774b-bcce-b302099a8059' } : {}),
  }
}

/** The old values of the fields that the example changes; undefined if the event is not a change. */
export function previousExample(event: CatalogueEvent): Record<string, unknown> | undefined {
  if (event.name.endsWith('.updated')) return { external_id: 'crm-7' }
  const kind = kindOf(event)
  const kindEvent = kindEventOf(event)
  if (!kind || !kindEvent) return undefined
  const { example, fields } = kinds[kind]
  const old = (name: string) => example[name] ?? fields[name]?.default ?? null
  return Object.fromEntries(Object.keys(kindEvent.example).map((name) => [name, old(name)]))
}

function approvalExample({ name }: CatalogueEvent) {
  const answered = name === 'approval.answered'
  return {
    id: ID,
    object: 'approval',
    run_id: '01890a5d-ac96-774b-bcce-b302099a8061',
    node_id: 'ask',
    workflow_id: '01890a5d-ac96-774b-bcce-b302099a8059',
    workflow_name: 'Discount',
    title: 'Discount of 30 %',
    message: 'For Acme.',
    assignees: ['ann@example.com'],
    status: answered ? 'approved' : 'waiting',
    comment: answered ? 'For this year only.' : null,
    answered_by: answered ? { type: 'link', id: null } : null,
    answered_at: answered ? '2026-01-31T09:30:00.000Z' : null,
    requested_at: '2026-01-30T09:30:00.000Z',
    expires_at: '2026-02-06T09:30:00.000Z',
    link: answered ? null : 'https://agx.example.com/approvals/AYkK…',
  }
}

/** The definition of an event that only one kind has, such as `deal.won`. */
function kindEventOf(event: CatalogueEvent): KindEvent | undefined {
  const kind = kindOf(event)
  return kind && kinds[kind].events?.[event.name.slice(event.name.indexOf('.') + 1)]
}

function runExample(event: CatalogueEvent) {
  const action = event.name.split('.')[1]!
  const status = action === 'started' || action === 'late' ? 'running' : action
  return {
    id: ID,
    object: 'run',
    workflow_id: '01890a5d-ac96-774b-bcce-b302099a8059',
    workflow_name: 'Welcome',
    workflow_version: 1,
    status,
    trigger: 'api',
    outputs: status === 'completed' ? { greeted: true } : null,
    error: status === 'failed' ? { code: 'timeout', message: 'no complete response within 30000 ms' } : null,
    created_at: TIME,
  }
}

/** The data of events that are not about a record, by subject. */
const OTHERS: Record<
  string,
  { schema: z.ZodType; example: (event: CatalogueEvent) => Record<string, unknown> } | undefined
> = {
  run: { schema: run, example: runExample },
  list_membership: {
    schema: membership,
    example: () => ({
      id: ID,
      object: 'list_membership',
      list: { id: '01890a5d-ac96-774b-bcce-b302099a8062', name: 'New leads' },
      entity: 'contacts',
      cause: 'record',
      record: recordExample(kinds.contacts),
    }),
  },
  approval: { schema: approval, example: approvalExample },
  webhook: {
    schema: webhook,
    example: () => ({
      id: ID,
      object: 'outgoing_webhook',
      name: 'Billing',
      url: 'https://example.com/hooks',
      status: 'Inactive',
      status_reason: 'five days without a success',
      failing_since: TIME,
    }),
  },
}
