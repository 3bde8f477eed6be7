import assert from 'node:assert/strict'
import {
  kindOf,
  TARGET_ENTITIES,
  targetEntityOf,
  withKind,
  withTargetEntity,
} from '../../../../db/model/incoming/target-entity.ts'
import type { TargetKind } from '../../../../db/model/incoming/types.ts'

describe('the target entity of an incoming webhook', () => {
  it('is the name of its kind in the table and on the wire', () => {
    assert.deepEqual(TARGET_ENTITIES, ['Contact', 'Company', 'Deal', 'Task', 'none'])
    assert.deepEqual(TARGET_ENTITIES.map(kindOf), ['contacts', 'companies', 'deals', 'tasks', 'none'])
    for (const entity of TARGET_ENTITIES) assert.equal(targetEntityOf(kindOf(entity)), entity)
  })

  it('is converted at its place among other values', () => {
    const row = { name: 'Form', target_entity: 'Company', burst: 0 } as const
    assert.equal(JSON.stringify(withKind(row)), '{"name":"Form","kind":"companies","burst":0}')
    assert.equal(JSON.stringify(withTargetEntity(withKind(row))), JSON.stringify(row))
    assert.deepEqual(withKind({ target_entity: undefined }), { kind: undefined })
    const others: { kind?: TargetKind; burst: number } = { burst: 1 }
    assert.deepEqual(withTargetEntity(others), { burst: 1 })
  })
})
