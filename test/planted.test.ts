import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { generateKey, isKey } from '../db/model/access/key-format.ts'
import { createOrganization, createTestDatabase } from './support/database.ts'
import { noteSecrets } from './support/made-secrets.ts'
import {
  assertNoLeaks,
  planted,
  plantedKey,
  searchedLog,
  searchFolder,
  searchText,
} from './support/planted.ts'
import './support/worker.ts'

/** The search that fails every test file whose secrets leak must itself be able to fail. */
describe('planted secrets', () => {
  const foundIn = (place: RegExp) => assert.throws(assertNoLeaks, place)

  it('are asked for by the hook after each file, also where a file starts workers', function () {
    const { _afterAll: hooks } = this.test!.parent!.parent as unknown as { _afterAll: { fn: unknown }[] }
    assert.ok(
      hooks.some(({ fn }) => fn === assertNoLeaks),
      'the hook has another copy of planted.ts',
    )
  })

  it('are found in texts as they are, in base64 and in hexadecimal, and in keys', () => {
    const secret = planted('abc')
    for (const text of [
      secret,
      JSON.stringify({ secret }),
      encodeURIComponent(secret),
      plantedKey(),
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

  it('are found as those that the service makes, in answers, cookies and mails', async () => {
    const token = () => randomBytes(32).toString('base64url')
    const id = '01a204f2-1d4a-71d7-8737-7fb48112a69e'
    const made: Record<string, (secret: string) => string> = {
      [generateKey()]: (key) => JSON.stringify({ object: 'key', key }),
      [`whsec_${randomBytes(32).toString('base64')}`]: (secret) => JSON.stringify({ secret, id }),
      [token()]: (secret) => `agx_session=${secret}; Path=/; HttpOnly`,
      [token()]: (csrf_token) => JSON.stringify({ csrf_token }),
      [token()]: (invitation) => `Accept: http://localhost:8080/app/invitations/${invitation}/accept`,
      [token()]: (reset) => `http://localhost:8080/app/password-resets/${reset}\r\n`,
      [token()]: (hook) => JSON.stringify({ url_with_token: `/webhooks/incoming/${id}?token=${hook}` }),
    }
    for (const [secret, shown] of Object.entries(made)) {
      searchText('an output', secret)
      assertNoLeaks()
      noteSecrets(shown(secret))
      for (const text of [secret, secret.slice(10), Buffer.from(`ada:${secret}`).toString('base64')]) {
        searchText('an output', `before ${text} after`)
        foundIn(/an output/)
      }
      searchText('an output', `before ${secret.slice(0, 10)} after`)
    }
    const db = await createTestDatabase()
    await createOrganization(db, { name: `Of ${Object.keys(made)[3]}` })
    await db.drop()
    foundIn(/the table organizations/)
  })

  it('are found in the tables of a database of tests', async () => {
    const db = await createTestDatabase()
    await createOrganization(db, { name: `Of ${planted('abc')}` })
    await db.drop()
    foundIn(/the table organizations/)
  })
})
