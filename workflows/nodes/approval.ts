import { z } from 'zod'
import { parseDuration } from '../language/duration.ts'
import { NodeError } from '../language/node-error.ts'
import { defineNode } from './define.ts'
import { duration } from './fields.ts'
import { type ApprovalAnswer, DECISIONS, type Notice } from './wait-for.ts'

const MAX_REMINDERS = 10
const MAX_ASKED = 50

/** Stands for the owner of the record of the trigger. */
const OWNER = 'owner'
const OWNER_ID = '{{ trigger.record.owner_id }}'

const span = duration('1s', '365d')

export const approval = defineNode({
  type: 'approval',
  engine: 3,
  laterUses: [{ engine: 14, isUsed: ({ assignees }) => assignees === OWNER }],
  reads: ({ assignees }) => (assignees === OWNER ? { assignees: [OWNER_ID] } : {}),
  category: 'flow',
  title: 'Approval',
  alsoCalled: ['approve', 'human', 'human_approval', 'ask_approval', 'request_approval'],
  description:
    'Asks to approve or reject, and waits for the decision at a link, where anybody who has it can decide; `expired` only with a `timeout`; `assignees`: email addresses and ids of users, or `owner` (of the record). Assignees get the link by mail, each in a mail of their own; the event `approval.requested` has it too, for webhooks and other workflows. A key with the scope workflows:run can decide too (`POST /v1/runs/{run_id}/signal {approval_id, decision}`).',
  effect: 'write',
  grows: () => false,
  asksPerson: true,
  config: z.strictObject({
    title: z.string().min(1).max(200).describe('The decision to make, in a few words.'),
    message: z.string().max(10_000).optional().describe('What the person should know, as plain text.'),
    assignees: z
      .union([z.literal(OWNER), z.array(z.union([z.uuid(), z.email()])).max(MAX_ASKED)])
      .default([])
      .describe(
        'The people to ask, by email address or user id; they get a mail with the link. `owner`: the owner of `trigger.record`. The link works for anybody.',
      ),
    timeout: span.optional().describe('How long to wait at most. Default: without limit.'),
    reminders: z
      .array(span)
      .max(MAX_REMINDERS)
      .default([])
      .describe('When to remind, counted from the request: `[1d, 3d]`. Raises `approval.reminder`.'),
    remind_every: span
      .optional()
      .describe(`Reminds at this interval, at most ${MAX_REMINDERS} times. Instead of \`reminders\`.`),
    escalate_after: span
      .optional()
      .describe('When to escalate, counted from the request. Raises `approval.escalated`.'),
    escalate_to: z
      .array(z.email())
      .max(MAX_ASKED)
      .default([])
      .describe('The email addresses that get the link then. Default: those of the assignees.'),
  }),
  output: z.strictObject({
    decision: z
      .enum([...DECISIONS, 'expired'])
      .nullable()
      .describe('`expired` if nobody has decided in time.'),
    comment: z.string().nullable(),
    answered_by: z
      .strictObject({
        type: z.string(),
        id: z.string().nullable(),
        shown_to: z.strictObject({ type: z.string(), id: z.string() }).optional(),
      })
      .nullable()
      .describe(
        'Who decided: the `id` of a key or user, or of type `link` somebody at the link, with the key or user in `shown_to` that the API showed it to.',
      ),
    answered_at: z.iso.datetime().nullable(),
  }),
  handles: ({ timeout }) => [
    { name: 'approved', description: 'The person has approved.' },
    { name: 'rejected', description: 'The person has rejected.' },
    ...(timeout === undefined ? [] : [{ name: 'expired', description: 'Nobody has decided in time.' }]),
  ],
  optionalVariables: {
    names: ['SMTP_URL', 'MAIL_FROM', 'PUBLIC_URL'],
    isUsed: ({ assignees, escalate_to }) => [assignees, escalate_to].flat().some(mayBeAddress),
    without: 'send no mails',
  },
  check: (given) => {
    const { timeout, reminders, remind_every, escalate_after, escalate_to } = given
    const problems = [
      ...(remind_every !== undefined && reminders !== undefined
        ? [
            {
              code: 'invalid_config' as const,
              message: 'reminders and remind_every are both given',
              path: ['remind_every'],
              hint: 'give one of them',
            },
          ]
        : []),
      ...(escalate_to !== undefined && escalate_after === undefined
        ? [
            {
              code: 'missing_value' as const,
              message: 'escalate_to has no effect without escalate_after',
              path: ['escalate_to'],
              hint: 'add `escalate_after: …`',
            },
          ]
        : []),
    ]
    const most = milliseconds(timeout)
    if (most === undefined) return problems
    const late = (value: unknown, path: PropertyKey[]) =>
      (milliseconds(value) ?? 0) < most
        ? []
        : [
            {
              code: 'invalid_config' as const,
              message: `${String(path[0])} of ${String(value)} is not before the timeout of ${String(timeout)}`,
              path,
            },
          ]
    const listed = Array.isArray(reminders) ? reminders : []
    return [
      ...problems,
      ...late(remind_every, ['remind_every']),
      ...listed.flatMap((value, index) => late(value, ['reminders', index])),
      ...late(escalate_after, ['escalate_after']),
    ]
  },
  example: {
    config: {
      title: 'Discount of {{ inputs.percent }} %',
      message: 'For {{ trigger.record.name }}.',
      assignees: ['ann@example.com'],
      timeout: '7d',
      reminders: ['1d', '3d'],
      escalate_after: '5d',
      escalate_to: ['head@example.com'],
    },
    inputs: { inputs: { percent: 30 }, trigger: { record: { name: 'Acme' } } },
    answer: {
      answer: { decision: 'approved', comment: 'For this year only.' },
      answered_by: { type: 'link', id: null },
      answered_at: '2026-01-08T09:30:00.000Z',
    },
    output: {
      decision: 'approved',
      comment: 'For this year only.',
      answered_by: { type: 'link', id: null },
      answered_at: '2026-01-08T09:30:00.000Z',
    },
    handle: 'approved',
  },
  run(config, { now, renderWith }) {
    const { title, message = null, timeout, escalate_after, escalate_to } = config
    const assignees = config.assignees === OWNER ? [ownerOf(renderWith(OWNER_ID, {}))] : config.assignees
    const after = (text: string, times = 1) => new Date(now.getTime() + times * parseDuration(text)!)
    const expires_at = timeout === undefined ? null : after(timeout)
    const reminders = [
      ...config.reminders.map((text) => after(text)),
      ...repeated(config.remind_every, (text, times) => after(text, times)),
    ].filter((at) => expires_at === null || at < expires_at)
    const notices: Notice[] = [
      ...reminders.map((at) => ({ event: 'approval.reminder' as const, at: at.toISOString() })),
      ...(escalate_after === undefined
        ? []
        : [{ event: 'approval.escalated' as const, at: after(escalate_after).toISOString() }]),
    ].sort((a, b) => a.at.localeCompare(b.at))
    return {
      wait_for: { type: 'decision', title, message, assignees, escalate_to, notices, expires_at },
      output: UNDECIDED,
    }
  },
  answered({ answer, answered_by, answered_at }) {
    if (answer === null) return { output: { ...UNDECIDED, decision: 'expired' as const }, handle: 'expired' }
    const { decision, comment } = answer as ApprovalAnswer
    return { output: { decision, comment, answered_by, answered_at }, handle: decision }
  },
})

function ownerOf(id: unknown): string {
  if (typeof id === 'string') return id
  throw new NodeError('no_such_user', 'The record has no owner, so that nobody can be asked.')
}

const UNDECIDED = { decision: null, comment: null, answered_by: null, answered_at: null }

/** The times of repeated reminders. */
const repeated = (interval: string | undefined, at: (interval: string, times: number) => Date): Date[] =>
  interval === undefined ? [] : Array.from({ length: MAX_REMINDERS }, (_, index) => at(interval, index + 1))

/** Whether it gets a mail: an email address, the id of a user, `owner`, or what a placeholder renders. */
const mayBeAddress = (value: unknown) => typeof value === 'string'

const milliseconds = (value: unknown) => (typeof value === 'string' ? parseDuration(value) : undefined)
