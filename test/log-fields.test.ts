import assert from 'node:assert/strict'
import { FILE_IDS } from '../db/files/moves/queue.ts'
import { documentedLogFields, loggedFields } from './support/log-fields.ts'

describe('the fields of log lines', () => {
  it('are named in their reference, also those of faults that no test causes', () => {
    const documented = documentedLogFields()
    const logged = loggedFields()
    assert.ok(logged.length > 100, `only ${logged.length} were found`)
    assert.deepEqual(
      logged.filter(({ name }) => !documented.has(name)).map(({ file, name }) => `${file}: ${name}`),
      [],
    )
    for (const name of Object.values(FILE_IDS)) assert.ok(documented.has(name), name)
  })

  it('leave the name of the build alone: the version of a workflow has another one', () => {
    const own = ['level', 'time', 'msg', 'name', 'host', 'pid', 'version', 'commit']
    assert.deepEqual(
      loggedFields().filter(({ name }) => own.includes(name)),
      [],
    )
  })
})
