import { ENTITY_OF, type TargetEntity } from '../../db/incoming/types.ts'
import { createSchema } from '../../db/records/model/schemas.ts'
import { type Checked, check } from '../http/validate.ts'
import type { Mapped } from './mapping/types.ts'

/** The mapped values as a valid new record, or the issues of the record and of the company that it names. */
export function checkMapped(target: TargetEntity, { fields, company_name }: Mapped): Checked {
  const record = check(createSchema(ENTITY_OF[target]), fields, 'body')
  const company = company_name?.trim()
    ? check(createSchema('companies'), { name: company_name }, 'body')
    : undefined
  const issues = [
    ...('issues' in record ? record.issues : []),
    ...(company && 'issues' in company
      ? company.issues.map((issue) => ({ ...issue, loc: ['body', 'company_name'] }))
      : []),
  ]
  return issues.length > 0 ? { issues } : record
}
