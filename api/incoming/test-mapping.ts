import { fitToOrganization, hasRecords } from '../../db/incoming/apply.ts'
import { fitMapped } from '../../db/model/incoming/fit.ts'
import type { Mapped } from '../../db/model/incoming/mapping/types.ts'
import { toDetails } from '../../db/model/incoming/refusals.ts'
import { entityOf } from '../../db/model/incoming/target-entity.ts'
import type { IncomingWebhook } from '../../db/model/incoming/types.ts'
import type { Tenant } from '../../db/postgres/tenancy.ts'

/** The body of a sample as a sender would send it. */
export const sampleBody = (payload: unknown): Buffer =>
  Buffer.from(typeof payload === 'string' ? payload : JSON.stringify(payload))

/** The new record that a mapped payload becomes, without writing. */
export async function testMapping(tx: Tenant, webhook: IncomingWebhook, mapped: Mapped) {
  const fitted = mapped.skip || webhook.kind === 'none' ? { mapped } : fitMapped(webhook, mapped)
  const { mapped: shown, issues } =
    'issues' in fitted
      ? { mapped, issues: fitted.issues }
      : mapped.skip || !hasRecords(webhook)
        ? { mapped, issues: [] }
        : await fitToOrganization(tx, webhook, fitted.mapped)
  return {
    object: 'incoming_webhook_test',
    valid: issues.length === 0,
    entity: entityOf(webhook.kind),
    mapped_data: shown,
    details: toDetails(issues),
  }
}
