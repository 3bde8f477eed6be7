import assert from 'node:assert/strict'
import { proposeMapping } from '../../../../db/model/imports/propose.ts'
import type { Targets } from '../../../../db/model/imports/targets.ts'
import { mapAutomatically } from '../../../../db/model/incoming/mapping/automatic.ts'
import { kinds } from '../../../../db/model/records/kinds/index.ts'
import { SYNONYMS } from '../../../../db/model/records/synonyms.ts'

describe('synonyms of fields', () => {
  it('name existing fields', () => {
    const besideFields = ['full_name', 'company_name', 'note_content', 'tags', 'external_id']
    for (const [entity, synonyms] of Object.entries(SYNONYMS))
      for (const synonym of Object.values(synonyms)) {
        const [field = ''] = synonym!.field.split('.')
        const exists = field in kinds[entity as keyof typeof kinds].fields || besideFields.includes(field)
        assert.ok(exists, `${entity} have no ${field}`)
      }
  })

  it('are the same for columns of files and for payloads', () => {
    const text = (name: string) => [name, { name, type: 'text' }] as const
    const targets: Targets = {
      open: true,
      byName: new Map(['email', 'mobile_phone', 'address.state', 'lead_source'].map(text)),
    }
    const names = {
      'Work E-Mail': 'email',
      'Mobile Phone Number': 'mobile_phone',
      'State/Region': 'address.state',
    }
    assert.deepEqual(proposeMapping('contacts', Object.keys(names), targets).mapping, names)
    const payload = Object.fromEntries(
      Object.keys(names).map((name) => [name, 'zoe@example.com 079 123 45 67']),
    )
    const { sources } = mapAutomatically(payload, 'contacts')
    assert.deepEqual(Object.fromEntries(Object.entries(sources).map(([field, path]) => [path, field])), names)
  })
})
