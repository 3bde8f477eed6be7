import { z } from 'zod'
import { parseDuration } from '../definition/duration.ts'
import { defineNode } from './define.ts'
import { duration } from './fields.ts'
import { type ApprovalAnswer, DECISIONS, type Notice } from './wait-for.ts'

const MAX_REMINDERS = 10

const span = duration('1s', '365d')

export const approval = defineNode({
  type: 'approval',
  category: 'flow',
  title: 'Approval',
  alsoCalled: ['approve', 'human', 'human_approval', 'ask_approval', 'request_approval'],
  description:
    'Asks a person to approve or reject, and waits for the decision. The event `approval.requested` has a link at which anybody who has it can decide; webhooks and other workflows can pass it on. A key with the scope workflows:run can decide too (`POST /v1/runs/{run_id}/signal`).',
  effect: 'write',
  engine: () => 3,
  asksPerson: true,
  config: z.strictObject({
    title: z.string().min(1).max(200).describe('What is to be decided, in a few words.'),
    message: z.string().max(10_000).optional().describe('What the person should know, as plain text.'),
    assignees: z
      .array(z.union([z.uuid(), z.email()]))
      .max(50)
      .default([])
      .describe(
        'Who is asked: ids or email addresses. They are part of the events; the link works for anybody.',
      ),
    timeout: span.optional().describe('How long to wait at most. Default: without limit.'),
    reminders: z
      .array(span)
      .max(MAX_REMINDERS)
      .default([])
      .describe('When to raise `approval.reminder`, counted from the request: `[1d, 3d]`.'),
    escalate_after: span.optional().describe('When to raise `approval.escalated`, counted from the request.'),
  }),
  output: z.strictObject({
    decision: z.enum(DECISIONS).nullable().describe('Null if nobody has decided in time.'),
    comment: z.string().nullable(),
    answered_by: z
      .strictObject({ type: z.string(), id: z.string().nullable() })
      .nullable()
      .describe('The key or user; of type `link` for a decision at the link.'),
    answered_at: z.iso.datetime().nullable(),
  }),
  handles: ({ timeout }) => [
    { name: 'approved', description: 'The person has approved.' },
    { name: 'rejected', description: 'The person has rejected.' },
    ...(timeout === undefined ? [] : [{ name: 'expired', description: 'Nobody has decided in time.' }]),
  ],
  check: ({ timeout, reminders, escalate_after }) => {
    const most = milliseconds(timeout)
    if (most === undefined) return []
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
  run({ title, message = null, assignees, timeout, reminders, escalate_after }, { now }) {
    const after = (text: string) => new Date(now.getTime() + parseDuration(text)!)
    const expires_at = timeout === undefined ? null : after(timeout)
    const notices: Notice[] = [
      ...reminders.map((text) => ({ event: 'approval.reminder' as const, at: after(text).toISOString() })),
      ...(escalate_after === undefined
        ? []
        : [{ event: 'approval.escalated' as const, at: after(escalate_after).toISOString() }]),
    ].sort((a, b) => a.at.localeCompare(b.at))
    return {
      wait_for: { type: 'decision', title, message, assignees, notices, expires_at },
      output: UNDECIDED,
    }
  },
  answered({ answer, answered_by, answered_at }) {
    if (answer === null) return { output: UNDECIDED, handle: 'expired' }
    const { decision, comment } = answer as ApprovalAnswer
    return { output: { decision, comment, answered_by, answered_at }, handle: decision }
  },
})

const UNDECIDED = { decision: null, comment: null, answered_by: null, answered_at: null }

const milliseconds = (value: unknown) => (typeof value === 'string' ? parseDuration(value) : undefined)
