import type { KindObject } from '../../../workflows/shared/record-kinds.ts'
import type { Mapped } from './mapping/types.ts'
import { entityOf } from './target-entity.ts'
import type { IncomingWebhook, WebhookKind, Write } from './types.ts'

/** The message of an accepted request: `contact created`, `started 2 workflows`. */
export function messageOf(entity: KindObject | null, action: Write, runIds: string[]): string {
  if (entity !== null && action !== 'triggered') return `${entity} ${action}`
  return runIds.length === 1 ? 'started a workflow' : `started ${runIds.length || 'no'} workflows`
}

/** The message of a request that writes only its log row. */
export const nothingWritten = (
  reason: string,
  { workflow_id }: Pick<IncomingWebhook, 'workflow_id'>,
): string => `${reason}: nothing was written${workflow_id ? ', and no workflow was started' : ''}`

/** `mapped_data` of a log entry. Its column `run_id` has the first run only. */
export const mappedData = (kind: WebhookKind, mapped: Mapped, runIds: string[] = []) => ({
  entity: entityOf(kind),
  ...mapped,
  ...(runIds.length > 1 ? { run_ids: runIds } : {}),
})
