import type { Actor } from '../actor.ts'
import type { Kind } from './kind.ts'
import { DEFAULT_PIPELINES } from './pipelines/presets.ts'

const ID = '01890a5d-ac96-774b-bcce-b302099a8057'
const ACTOR: Actor = { type: 'key', id: '01890a5d-ac96-774b-bcce-b302099a8058' }
const TIME = '2026-01-31T09:30:00.000Z'

/** An example of a record in the API: the kind's example with derived and default values. */
export function recordExample(kind: Kind, changed: Readonly<Record<string, unknown>> = {}) {
  const { fields, object, example, derive } = kind
  const values = {
    ...Object.fromEntries(Object.entries(fields).map(([name, field]) => [name, field.default ?? null])),
    ...example,
    ...changed,
  }
  return {
    object,
    id: ID,
    ...values,
    ...derive?.({
      next: values,
      before: undefined,
      given: {},
      now: TIME,
      actor: ACTOR,
      pipelines: DEFAULT_PIPELINES,
    }),
    external_id: null,
    owner_id: null,
    tags: [],
    custom_fields: {},
    alternate_keys: [],
    version: 1,
    created_at: TIME,
    updated_at: TIME,
    created_by: ACTOR,
    updated_by: ACTOR,
  }
}
