import type { Issue } from '../../db/errors.ts'
import { ENTITY_OF, type IncomingWebhook } from '../../db/incoming/types.ts'
import type { Tenant } from '../../db/postgres/tenancy.ts'
import { lockFieldRules } from '../../db/records/custom-fields/rules.ts'
import { preparedCustomFields } from '../../db/records/model/custom-fields/values.ts'
import type { EntityName } from '../../db/records/model/kind.ts'
import { toDetails } from './answer.ts'
import { checkMapped } from './check-mapped.ts'
import type { Mapped } from './mapping/types.ts'

/** The body of a sample as a sender would send it. */
export const sampleBody = (payload: unknown): Buffer =>
  Buffer.from(typeof payload === 'string' ? payload : JSON.stringify(payload))

/** The new record that a mapped payload becomes, without writing. */
export async function testMapping(tx: Tenant, webhook: IncomingWebhook, mapped: Mapped) {
  const entity = ENTITY_OF[webhook.target_entity]
  const checked = checkMapped(webhook.target_entity, mapped)
  const issues = 'issues' in checked ? checked.issues : await customFieldIssues(tx, entity, checked.value)
  return {
    object: 'incoming_webhook_test',
    valid: issues.length === 0,
    entity: webhook.target_entity.toLowerCase(),
    mapped_data: mapped,
    details: toDetails(issues),
  }
}

async function customFieldIssues(tx: Tenant, entity: EntityName, parsed: unknown): Promise<Issue[]> {
  const rules = await lockFieldRules(tx, entity)
  return preparedCustomFields(rules, (parsed as { custom_fields: unknown }).custom_fields).issues
}
