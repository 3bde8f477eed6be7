import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { openSession } from '../../../db/access/sessions.ts'
import { checkPassword } from '../../../db/process/passwords.ts'
import {
  createMember,
  createOrganization,
  createTestDatabase,
  type TestDatabase,
} from '../../support/database.ts'
import { temporaryFolder } from '../../support/folder.ts'

describe('npm run set-password', () => {
  let db: TestDatabase
  let userId: string
  let organizations: string[]
  before(async () => {
    db = await createTestDatabase()
    organizations = [await createOrganization(db), await createOrganization(db)]
    userId = await createMember(db, organizations[0]!, 'Ada', 'owner')
    await db
      .system('memberships')
      .insert({ organization_id: organizations[1]!, user_id: userId, role: 'owner' })
  })
  after(() => db.drop())

  const run = (args: string[], env: Record<string, string> = {}) =>
    new Promise<{ code: number; out: string; errors: string }>((resolve) => {
      const { DATABASE_URL: _, ...rest } = process.env
      execFile(
        process.execPath,
        ['worker/run.mjs', 'worker/commands/set-password.ts', ...args],
        { env: { ...rest, DATA_DIR: temporaryFolder(), ...env } },
        (error, out, errors) => resolve({ code: Number(error?.code ?? 0), out, errors }),
      )
    })

  it('prints a new password, and ends the sessions of the user', async () => {
    await openSession(db.system, userId, organizations[1]!)
    const email = `${userId}@EXAMPLE.com`
    const { code, out } = await run([email], { DATABASE_URL: db.url })
    assert.equal(code, 0)
    const [, password] = /^password of \S+ \(shown once\): (\S{16})\n$/.exec(out)!
    const { password_hash } = await db.system('users').where({ id: userId }).first()
    assert.equal((await checkPassword(password!, password_hash)).right, true)
    assert.deepEqual(await db.system('sessions').where({ user_id: userId }), [])
    const log = await db.system('audit_log').where({ action: 'member.password_changed' })
    assert.deepEqual(log.map((entry) => entry.organization_id).sort(), organizations.sort())
  })

  it('says what is wrong', async () => {
    const database = { DATABASE_URL: db.url }
    const unknown = await run(['nobody@example.com'], database)
    assert.deepEqual([unknown.code, unknown.errors], [1, 'user not found\n'])
    assert.match((await run([], database)).errors, /^usage: npm run set-password/)
    assert.match((await run(['a@example.com'])).errors, /^DATABASE_URL is missing/)
  })

  it('finds the embedded database of npm start', async () => {
    const folder = temporaryFolder()
    const passwords = { agx_app: 'one', agx_system: 'two' }
    writeFileSync(join(folder, 'postgres.json'), JSON.stringify({ password: 'three', passwords, port: 1 }))
    const { code, errors } = await run(['a@example.com'], { DATA_DIR: folder })
    assert.equal(code, 1)
    assert.match(errors, /^the password cannot be set: .*127\.0\.0\.1:1/)
    assert.doesNotMatch(errors, /two/)
  })
})
