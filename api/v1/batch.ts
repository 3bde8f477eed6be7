import { z } from 'zod'
import { AppError, type Issue, invalid } from '../../db/model/errors.ts'
import type { KindName } from '../../db/model/records/kind.ts'
import { kindNames, kinds } from '../../db/model/records/kinds/index.ts'
import { createSchema, recordSchema, updateSchema, upsertSchema } from '../../db/model/records/schemas.ts'
import { isUpsertKey, upsertKey, upsertKeys } from '../../db/model/records/upsert-keys.ts'
import { type Checked, check, toIssues } from '../../db/model/validate.ts'
import { batch, issuesAt, type Operation, type Result } from '../../db/records/batch.ts'
import { turnsOf } from '../../workflows/shared/turns.ts'
import { errorBody, STATUS } from '../http/errors.ts'
import { type Route, route } from '../http/route.ts'
import type { Scope } from '../http/scopes.ts'
import { linkScopes, linkScopesNote, writeScopes } from './link-scopes.ts'
import { tagOf, title } from './record-shapes.ts'

const MAX_OPERATIONS = 200
const OPS = ['create', 'update', 'upsert', 'delete'] as const

const DESCRIPTION = `Runs up to ${MAX_OPERATIONS} operations in order, in one transaction. \`results\` has the status of
each; a failed one does not affect the others. With \`atomic: true\` one failure writes nothing: the response is 422,
\`error.param\` names the operation and \`detail\` lists its issues. An update or delete fails with 412 if the record
has another \`version\`. An upsert updates the record whose field \`by\` has the value in \`data\`, or creates one;
it fails with 409 if several match. Its \`associations\` are added.`

/** Up to 200 writes to one kind in one request. */
export const batchRoutes: Route[] = kindNames.map((kind) => {
  const { example, object } = kinds[kind]
  const schema = operationOf(kind)
  return route({
    method: 'POST',
    path: `/objects/${kind}/batch`,
    scope: `${kind}:write`,
    id: `batch${title(kind)}`,
    grows: ({ operations }) => operations.some(({ op }) => op !== 'delete'),
    tag: tagOf(kind),
    summary: `Run a batch on ${kind}`,
    description: `${DESCRIPTION} ${linkScopesNote(kind)}`.trim(),
    body: batchOf(schema).meta({ id: `${title(object)}Batch` }),
    checkBody: (sent, organizationId) => checkInTurns(schema, sent, organizationId),
    response: {
      status: 200,
      schema: z
        .object({
          object: z.literal('batch'),
          atomic: z.boolean(),
          succeeded: z.int(),
          failed: z.int(),
          results: z.array(resultOf(kind)),
        })
        .meta({ id: `${title(object)}BatchResult` }),
    },
    example: { operations: [{ op: 'create', data: example }] },
    handler: async ({ body: { operations, atomic }, caller, requireScopes, requestId, tenant }) => {
      requireScopes(operations.flatMap((operation) => scopesOf(kind, operation)))
      const results = await tenant((tx) => batch(tx, kind, operations, atomic))
      await turnsOf(caller.organization.id, results.length)()
      const failed = results.filter((result) => 'error' in result).length
      return {
        object: 'batch',
        atomic,
        succeeded: results.length - failed,
        failed,
        results: results.map((result, index) => present(operations[index]!, result, index, requestId)),
      }
    },
  })
})

function batchOf<T extends z.ZodType>(operation: T) {
  return z.strictObject({
    operations: z.array(operation).min(1).max(MAX_OPERATIONS),
    atomic: z.boolean().default(false).describe('Whether one failure rolls back the whole batch.'),
  })
}

const unreadBatch = batchOf(z.unknown())

/** As the schema of the body, in turns. An operation has no issues of its own: an invalid one is read as refused. */
async function checkInTurns(
  schema: z.ZodType<Operation>,
  sent: unknown,
  organizationId: string,
): Promise<Checked> {
  const read = check(unreadBatch, sent, 'body')
  if ('issues' in read) return read
  const { operations, atomic } = read.value as z.infer<typeof unreadBatch>
  const turn = turnsOf(organizationId, operations.length)
  const parsed: Operation[] = []
  for (const one of operations) {
    await turn()
    parsed.push(schema.parse(one, { reportInput: true }))
  }
  return { value: { operations: parsed, atomic } }
}

/** Reads one operation. An invalid operation becomes a refused one, because the others still run. */
function operationOf(kind: KindName): z.ZodType<Operation> {
  const id = z.uuid().toLowerCase()
  const version = z.int().min(1).optional().describe('The expected version of the record.')
  const keys = upsertKeys(kind)
  return z
    .discriminatedUnion(
      'op',
      [
        z.strictObject({ op: z.literal('create'), data: createSchema(kind) }),
        z.strictObject({ op: z.literal('update'), id, version, data: updateSchema(kind) }),
        z
          .strictObject({
            op: z.literal('upsert'),
            by: z
              .string()
              .refine((name) => isUpsertKey(kind, name), `must be ${keys.join(', ')} or custom_fields.<name>`)
              .describe(`The key of the upsert: ${keys.join(', ')}, or a unique custom_fields.<name>.`),
            data: upsertSchema(kind),
          })
          .superRefine(({ by, data }, ctx) => {
            if (!isUpsertKey(kind, by) || upsertKey(by, data) !== undefined) return
            const message = 'is required as the key of the upsert'
            const path = ['data', ...by.split('.')]
            ctx.addIssue({ code: 'custom', path, message, params: { type: 'missing' } })
          }),
        z.strictObject({ op: z.literal('delete'), id, version }),
      ],
      {
        error: ({ code }) =>
          code === 'invalid_union' ? 'must be create, update, upsert or delete' : undefined,
      },
    )
    .transform((read): Operation => {
      if (read.op !== 'upsert') return read
      const { op, by, data } = read
      const created = createSchema(kind).safeParse(data, { reportInput: true })
      const input = created.success ? created.data : invalid(toIssues(created.error, 'body'))
      return { op, by, patch: data, input }
    })
    .catch(({ value, error }) => ({
      op: 'refused',
      wanted: OPS.find((op) => op === (value as { op?: unknown } | null)?.op) ?? null,
      error: invalid(toIssues(new z.ZodError(error.issues), 'body')),
    }))
}

function resultOf(kind: KindName) {
  return z
    .object({
      index: z.int().describe('The position of the operation.'),
      op: z.enum(OPS).nullable(),
      status: z.int().describe('The HTTP status of the operation.'),
      id: z.uuid().optional(),
      record: recordSchema(kind).optional(),
      deleted: z.literal(true).optional(),
      deleted_at: z.iso.datetime().optional(),
      error: z
        .looseObject({ type: z.string(), message: z.string(), request_id: z.string() })
        .optional()
        .describe('As in an error response; with 422 also `detail`.'),
      detail: z
        .array(
          z.looseObject({
            loc: z.array(z.union([z.string(), z.int()])),
            msg: z.string(),
            type: z.string(),
          }),
        )
        .optional(),
    })
    .meta({ id: `${title(kinds[kind].object)}BatchItem` })
}

function scopesOf(kind: KindName, operation: Operation): Scope[] {
  if (operation.op === 'create') return writeScopes(kind, operation.data, true)
  if (operation.op === 'update') return linkScopes(kind, operation.data)
  return operation.op === 'upsert' ? writeScopes(kind, operation.patch) : []
}

function present(operation: Operation, result: Result, index: number, requestId: string): object {
  const common = { index, op: operation.op === 'refused' ? operation.wanted : operation.op }
  if ('record' in result) {
    const { record, created } = result
    return { ...common, status: created ? 201 : 200, id: record.id, record }
  }
  if ('deleted' in result) {
    const { id, deleted, deleted_at } = result.deleted
    return { ...common, status: 200, id, deleted, deleted_at }
  }
  const { error } = result
  const located = error.details.issues ? withIssues(error, issuesAt(index, error)) : error
  const id = 'id' in operation ? { id: operation.id } : {}
  return { ...common, status: STATUS[error.type], ...id, ...errorBody(located, requestId) }
}

const withIssues = ({ type, message, details }: AppError, issues: Issue[]) =>
  new AppError(type, message, { ...details, issues })
