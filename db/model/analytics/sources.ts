import { type KindName, kindNames } from '../../../workflows/shared/record-kinds.ts'
import { RUN_STATUSES } from '../../../workflows/shared/statuses.ts'
import { LOG_ACTIONS, LOG_STATUSES } from '../incoming/log.ts'
import { DELIVERY_STATUSES } from '../outgoing/statuses.ts'
import { kinds } from '../records/kinds/index.ts'
import type { Dimension, Source } from './metric.ts'

function recordSource(kind: KindName): Source {
  const { fields, dimensions } = kinds[kind]
  const own = dimensions.map((name): [string, Dimension] => {
    const { type, description, values, ofOrganization } = fields[name]!
    const isId = type === 'user' || type === 'reference'
    const known = ofOrganization ? { ofOrganization } : values && { values }
    return [name, { type: isId ? 'id' : 'text', description: description ?? '', ...known }]
  })
  const owner: Dimension = { type: 'id', description: 'The owner of the record.' }
  return {
    table: kind,
    where: 't.deleted_at is null',
    dimensions: { owner_id: owner, ...Object.fromEntries(own) },
  }
}

/** Records that are not deleted, by kind. */
export const RECORDS = Object.fromEntries(kindNames.map((kind) => [kind, recordSource(kind)])) as Record<
  KindName,
  Source
>

/** Runs of workflows, without tests of nodes. */
export const RUNS: Source = {
  table: 'runs',
  where: "t.kind = 'run'",
  dimensions: {
    workflow_id: { type: 'id', description: 'The workflow.' },
    status: { type: 'text', description: 'The status of the run.', values: RUN_STATUSES },
  },
  retention: 'run_retention_days',
}

/** The log of requests to incoming webhooks. */
export const REQUESTS: Source = {
  table: 'incoming_logs',
  where: 'true',
  dimensions: {
    webhook_id: { type: 'id', description: 'The incoming webhook.' },
    status: {
      type: 'text',
      description: 'The outcome of the request.',
      values: LOG_STATUSES,
    },
    action: {
      type: 'text',
      description: 'The effect on the record.',
      values: LOG_ACTIONS,
    },
    error: { type: 'text', description: 'The code of the error, such as `invalid_secret`.' },
  },
  retention: 'log_retention_days',
}

/** Deliveries of events to outgoing webhooks, without tests. */
export const DELIVERIES: Source = {
  table: 'deliveries',
  where: 'not t.test',
  dimensions: {
    webhook_id: { type: 'id', description: 'The outgoing webhook.' },
    status: {
      type: 'text',
      description: 'The status of the delivery.',
      values: DELIVERY_STATUSES,
    },
  },
  retention: 'log_retention_days',
}
