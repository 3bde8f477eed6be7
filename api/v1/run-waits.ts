import { z } from 'zod'
import { AppError, type Issue, invalid } from '../../db/model/errors.ts'
import type { Tenant } from '../../db/postgres/tenancy.ts'
import { approvalLink, type ShownTo } from '../../db/process/approval-links.ts'
import { answerApproval } from '../../db/runs/approvals.ts'
import { type OpenWait, WAIT_TYPES } from '../../db/runs/open-waits.ts'
import { sendSignal } from '../../db/runs/signals.ts'
import { DECISIONS } from '../../workflows/nodes/wait-for.ts'
import { SIGNAL } from '../../workflows/shared/limits.ts'
import { approvalShape, MAX_COMMENT } from '../approvals/shape.ts'
import type { AppDeps } from '../deps.ts'
import { type Route, route } from '../http/route.ts'

const time = z.iso.datetime()

/** A wait of a run's node. */
export const runWait = z
  .object({
    path: z.string().meta({
      description:
        'The iteration of a loop that the node is in, such as `each:3`; empty outside of any loop.',
    }),
    node_id: z.string(),
    type: z.enum(WAIT_TYPES),
    name: z.string().nullable().meta({ description: 'For a signal: its name.' }),
    events: z.array(z.string()).nullable().meta({ description: 'For an event: its possible names.' }),
    record_id: z
      .uuid()
      .nullable()
      .meta({ description: 'For an event: its record, if the wait is limited to one.' }),
    when: z.string().nullable().meta({ description: 'For an event: the filter.' }),
    problem: z
      .object({ message: z.string(), event_id: z.uuid(), at: time })
      .nullable()
      .meta({ description: 'For an event: the last error of the filter.' }),
    since: time.nullable().meta({ description: 'For an event: the time after which events count.' }),
    child_run_id: z.uuid().nullable(),
    approval: z
      .object({
        id: z.uuid(),
        title: z.string(),
        message: z.string().nullable(),
        assignees: z.array(z.string()),
        link: z.string().meta({
          description:
            'The link to decide the approval. Whoever has the link can; the decision shows that you got it (`answered_by.shown_to`).',
        }),
        mails: z
          .array(
            z.object({
              event: z
                .string()
                .meta({ description: 'The event that caused the mail, such as `approval.reminder`.' }),
              address: z.string(),
              sent_at: time.nullable(),
              problem: z.string().nullable().meta({ description: 'The error of the last attempt.' }),
            }),
          )
          .meta({ description: 'The mails with the link.' }),
      })
      .nullable(),
    created_at: time,
    expires_at: time.nullable(),
  })
  .meta({ id: 'RunWait' })

export function presentWait(
  {
    id,
    path,
    node_id,
    type,
    name,
    topics,
    subject_id,
    filter,
    problem,
    since,
    settings,
    mails,
    ...times
  }: OpenWait,
  runId: string,
  { organizationId, actor }: Pick<Tenant, 'organizationId' | 'actor'>,
  deps: AppDeps,
) {
  const { created_at, expires_at } = times
  const key = { organization_id: organizationId, run_id: runId, id }
  return {
    path,
    node_id,
    type,
    name,
    events: topics?.map((topic) => topic.split(':')[0]!) ?? null,
    record_id: type === 'event' ? subject_id : null,
    when: filter,
    problem,
    since,
    child_run_id: type === 'child_run' ? subject_id : null,
    approval:
      type === 'decision' && settings
        ? {
            id,
            title: settings.title,
            message: settings.message,
            assignees: settings.assignees,
            link: approvalLink(deps.secretsKey, deps.config.PUBLIC_URL, key, actor as ShownTo),
            mails: mails.map(({ approval_id: _, ...mail }) => mail),
          }
        : null,
    created_at,
    expires_at,
  }
}

const body = z.object({
  name: z.string().min(1).max(SIGNAL.name).optional().describe('The name of a signal.'),
  payload: z
    .unknown()
    .optional()
    .describe(
      `The payload for the node that receives the signal: any JSON, up to ${SIGNAL.bytes / 1024} KiB.`,
    ),
  approval_id: z.uuid().optional().describe('Decides an approval that the run waits for.'),
  decision: z.enum(DECISIONS).optional(),
  comment: z.string().max(MAX_COMMENT).optional(),
})

/** Throws validation_error unless the request is either a signal or a decision. */
function requireOne({ name, payload, approval_id, decision, comment }: z.output<typeof body>): void {
  const missing = (field: string, msg: string): Issue => ({ loc: ['body', field], msg, type: 'missing' })
  const extra = (field: string, other: string): Issue => ({
    loc: ['body', field],
    msg: `does not belong to a ${other}`,
    type: 'unrecognized_key',
  })
  const issues: Issue[] = []
  if (approval_id === undefined) {
    if (name === undefined)
      issues.push(missing('name', 'is required: the name of a signal, or approval_id and decision'))
    if (decision !== undefined) issues.push(missing('approval_id', 'is required for a decision'))
    if (comment !== undefined && decision === undefined) issues.push(extra('comment', 'signal'))
  } else {
    if (decision === undefined) issues.push(missing('decision', `is required: ${DECISIONS.join(' or ')}`))
    if (name !== undefined) issues.push(extra('name', 'decision'))
    if (payload !== undefined) issues.push(extra('payload', 'decision'))
  }
  if (issues.length > 0) throw invalid(issues)
  if (payload !== undefined && Buffer.byteLength(JSON.stringify(payload)) > SIGNAL.bytes)
    throw new AppError(
      'payload_too_large',
      `the payload is larger than ${SIGNAL.bytes.toLocaleString('en')} bytes`,
    )
}

const sent = z
  .object({
    object: z.literal('signal'),
    run_id: z.uuid(),
    name: z.string(),
    path: z.string().nullable().meta({
      description: 'The iteration of the node that received the signal, as in `waits`; null if none did.',
    }),
    node_id: z.string().nullable().meta({
      description: 'The node that received the signal; null if the signal is kept until a node waits for it.',
    }),
  })
  .meta({ id: 'Signal' })

export const runWaitRoutes: Route[] = [
  route({
    method: 'POST',
    path: '/runs/{run_id}/signal',
    scope: 'workflows:run',
    id: 'signalRun',
    // What waits for a signal goes on in a full organization.
    grows: ({ payload }) => payload !== undefined,
    tag: 'Runs',
    summary: 'Signal a run',
    description: `Sends a signal (\`name\`, \`payload\`) to a run. The node that has waited longest for it receives it; if none waits yet, the signal is kept until one does. A run keeps up to ${SIGNAL.pending} signals. Or decides an approval (\`approval_id\`, \`decision\`, \`comment\`) that the run waits for; the run's \`waits\` contain the ids. 409 if the run has ended, if no node of its workflow waits for the name, or if the approval is already decided; 410 if it has expired.`,
    params: z.object({ run_id: z.uuid() }),
    body,
    gone: true,
    response: { status: 200, schema: z.union([sent, approvalShape]) },
    example: { name: 'paid', payload: { amount: '120.00' } },
    handler: async ({ params: { run_id }, body, tenant, caller }) => {
      requireOne(body)
      const { name, payload, approval_id, decision, comment = null } = body
      if (approval_id !== undefined) {
        const by = { type: caller.type, id: caller.id }
        const answered = await tenant((tx) =>
          answerApproval(tx, { run_id, id: approval_id }, { decision: decision!, comment }, by),
        )
        return { object: 'approval', ...answered }
      }
      const taken = await tenant((tx) => sendSignal(tx, run_id, { name: name!, payload }))
      return { object: 'signal', run_id, name: name!, ...taken }
    },
  }),
]
