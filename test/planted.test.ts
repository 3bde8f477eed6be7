import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { isKey } from '../db/access/keys.ts'
import { createOrganization, createTestDatabase } from './support/database.ts'
import {
  assertNoLeaks,
  planted,
  plantedKey,
  searchedLog,
  searchFolder,
  searchText,
} from './support/planted.ts'

/** The search that fails every test file whose secrets leak must itself be able to fail. */
describe('planted secrets', () => {
  const foundIn = (place: RegExp) => assert.throws(assertNoLeaks, place)

  it('are found in texts as they are, in base64 and in hexadecimal, and in keys', () => {
    const secret = planted('abc')
    for (const text of [
      ...[secret, JSON.stringify({ secret }), encodeURIComponent(secret), plantedKey()],
      ...['', 'a', 'ab', 'ada:'].map((before) => Buffer.from(before + secret).toString('base64')),
      Buffer.from(secret).toString('hex'),
    ]) {
      searchText('an output', `before ${text} after`)
      foundIn(/an output/)
    }
    searchText('an output', 'nothing')
    searchText('an output', 'another', ['other'])
    foundIn(/an output/)
    const [one, other] = [plantedKey(), plantedKey()]
    assert.ok(isKey(one) && one !== other)
  })

  it('are found in log lines, and in files at the border of what is read at once', () => {
    searchedLog('api').write(`{"msg":"${planted('abc')}"}\n`)
    foundIn(/the log of the api/)
    const folder = mkdtempSync(join(tmpdir(), 'agx-planted-'))
    writeFileSync(join(folder, 'file'), `${'x'.repeat(8 * 1024 * 1024 - 5)}${planted('abc')}`)
    searchFolder(folder)
    rmSync(folder, { recursive: true })
    foundIn(/agx-planted-\w+\/file/)
  })

  it('are found in the tables of a database of tests', async () => {
    const db = await createTestDatabase()
    await createOrganization(db, { name: `Of ${planted('abc')}` })
    await db.drop()
    foundIn(/the table organizations/)
  })
})
