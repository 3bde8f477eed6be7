import { meantBy } from '../../../workflows/language/problems.ts'
import type { Kind } from './kind.ts'
import { consentColumn } from './opt-out.ts'
import { normalise, SYNONYMS } from './synonyms.ts'

/**
 * The field that was most likely meant by an unknown name: a name of other systems for it, or else the nearest one of
 * `names`; undefined if there is none.
 */
export function meantField({ entity }: Kind, written: string, names: readonly string[]): string | undefined {
  const name = normalise(written)
  const field = SYNONYMS[entity][name]?.field ?? (consentColumn(name) && 'do_not_contact') ?? `${written}_id`
  const own = OWN[field] ?? field
  return own.split(' and ').every((one) => names.includes(one)) ? own : meantBy(written, names)
}

/** The fields of what mappings and imports write as one. */
const OWN: Record<string, string> = {
  full_name: 'first_name and last_name',
  company_name: 'company_id',
}
