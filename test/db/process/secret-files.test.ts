import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { readVariables, sharedVariables } from '../../../db/process/config.ts'
import { SECRET_VARIABLES } from '../../../db/process/secret-files.ts'
import { startVariables } from '../../../worker/dev/config.ts'
import { temporaryFolder } from '../../support/folder.ts'

describe('secrets in files', () => {
  const folder = temporaryFolder()
  const file = (text: string) => {
    const path = join(folder, 'secret')
    writeFileSync(path, text)
    return path
  }
  const key = Buffer.alloc(32, 7).toString('base64')
  const read = (env: Record<string, string>) =>
    readVariables(sharedVariables, { DATABASE_URL: 'postgres://localhost/agx', ...env })

  it('replace the variables, without the end of the line', () => {
    assert.equal(read({ SECRETS_KEY_FILE: file(`${key}\n`) }).SECRETS_KEY, key)
    const url = 'postgres://ann@db/agx'
    assert.equal(read({ DATABASE_URL: '', DATABASE_URL_FILE: file(url) }).DATABASE_URL, url)
  })

  it('are checked as the variables are, and refused with the name of the setting', () => {
    for (const [env, line] of [
      [{ SECRETS_KEY_FILE: file('short') }, /^SECRETS_KEY must be 32 bytes in base64/],
      [{ SECRETS_KEY_FILE: join(folder, 'none') }, /^SECRETS_KEY_FILE cannot be read \(ENOENT\)/],
      [
        { METRICS_TOKEN_FILE: join(folder, 'secret'), METRICS_TOKEN: 'a token of the scraper' },
        /are both set/,
      ],
    ] as const)
      assert.throws(() => read(env as never), { name: 'ConfigError', message: line })
    assert.throws(() => read({ SMTP_URL_FILE: file(' \n') }), {
      message: 'SMTP_URL_FILE names an empty file',
    })
  })

  it('are for every setting that holds one', () => {
    const secret = /(?:URL|KEY|KEYS_TO_OPEN|TOKEN|PASSWORD)$/
    const isPublic = /^(?:PUBLIC|TEMPORAL_UI|EXCHANGE_RATES)_URL$/
    const named = Object.keys(startVariables.shape).filter(
      (name) => secret.test(name) && !isPublic.test(name),
    )
    assert.deepEqual(named.sort(), [...SECRET_VARIABLES].sort())
  })
})
