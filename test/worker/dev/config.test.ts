import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { temporalProfile } from '../../../db/process/temporal-profile.ts'
import { readConfig } from '../../../worker/dev/config.ts'

const wrong: [settings: Record<string, string>, line: string][] = [
  [{ PORT: 'http' }, 'PORT must be a port number, 1 to 65535'],
  [{ WORKER_PORT: '0' }, 'WORKER_PORT must be a port number, 1 to 65535'],
  [{ TEMPORAL_UI_PORT: '65536' }, 'TEMPORAL_UI_PORT must be a port number, 1 to 65535'],
  [{ TRUSTED_PROXIES: 'two' }, 'TRUSTED_PROXIES must be an integer from 0 to 10'],
  [{ DATABASE_POOL: '1.5' }, 'DATABASE_POOL must be an integer from 2 to 200'],
  [{ TEMPORAL_TASK_QUEUE: 'a b' }, 'TEMPORAL_TASK_QUEUE may contain only letters, digits and . _ - : /'],
  [{ TEMPORAL_ADDRESS: 'localhost' }, 'TEMPORAL_ADDRESS must be a host and port such as 127.0.0.1:7233'],
  [{ PUBLIC_URL: 'agx.example.com' }, 'PUBLIC_URL must be a URL such as https://agx.example.com'],
  [{ ALLOW_INSECURE_WEBHOOKS: 'perhaps' }, 'ALLOW_INSECURE_WEBHOOKS must be true or false'],
  [
    { WORKER_POOL: 'dmz' },
    'WORKER_POOL is set: `npm start` has one worker, which runs everything; the worker of a pool is `npm run worker`',
  ],
  [{ NODE_ENV: 'prod' }, 'NODE_ENV must be one of development, production, test'],
  [{ SMTP_URL: 'smtp.example.com' }, 'SMTP_URL must be a URL such as smtps://user:password@smtp.example.com'],
  [{ SMTP_URL: 'smtp://localhost:1025' }, 'MAIL_FROM is missing: mails need a sender address'],
  [
    { MAIL_FROM: 'crm' },
    'MAIL_FROM must be an email address, such as ada@example.com or Ada Lovelace <ada@example.com>',
  ],
  [{ BOOTSTRAP_EMAIL: 'owner' }, 'BOOTSTRAP_EMAIL must be an email address'],
  [{ PORT: '7233' }, 'PORT and TEMPORAL_PORT are both 7233: set different ports'],
  [
    { PORT: 'x', HOST: 'y', SECRETS_KEY: 'z' },
    'SECRETS_KEY must be 32 bytes in base64: `openssl rand -base64 32`\nPORT must be a port number, 1 to 65535',
  ],
]

describe('the settings of npm start', () => {
  for (const [settings, line] of wrong)
    it(`refuse ${JSON.stringify(settings)} with a specific message`, () =>
      assert.throws(() => readConfig(settings), { name: 'ConfigError', message: line }))

  it('allow the same port twice if only one of the two is used', () => {
    const settings = { TEMPORAL_ADDRESS: '127.0.0.1:7233', PORT: '7233' }
    assert.equal(readConfig(settings).PORT, 7233)
  })

  it('count an empty variable as unset', () => assert.equal(readConfig({ PORT: '' }).PORT, 8080))

  describe('of a Temporal profile', () => {
    const folder = mkdtempSync(join(tmpdir(), 'agx-profile-'))
    const file = join(folder, 'temporal.toml')
    writeFileSync(
      file,
      '[profile.cloud]\naddress = "eu.example.com:7233"\nnamespace = "crm.a1b2c"\napi_key = "secret"\n',
    )
    after(() => rmSync(folder, { recursive: true }))
    const env = { TEMPORAL_CONFIG_FILE: file, TEMPORAL_PROFILE: 'cloud' }

    it('are its address, namespace, key and TLS; a variable overrides them', () => {
      const { TEMPORAL_ADDRESS, TEMPORAL_NAMESPACE } = readConfig(env)
      assert.deepEqual([TEMPORAL_ADDRESS, TEMPORAL_NAMESPACE], ['eu.example.com:7233', 'crm.a1b2c'])
      assert.equal(readConfig({ ...env, TEMPORAL_NAMESPACE: 'other' }).TEMPORAL_NAMESPACE, 'other')
      const { connectionOptions } = temporalProfile(env)
      assert.deepEqual([connectionOptions.apiKey, connectionOptions.tls], ['secret', true])
    })

    it('are not those of the Temporal CLI, unless a profile is named', () => {
      mkdirSync(join(folder, 'temporalio'))
      writeFileSync(
        join(folder, 'temporalio', 'temporal.toml'),
        '[profile.default]\naddress = "other.example.com:7233"\n',
      )
      assert.equal(
        readConfig({ XDG_CONFIG_HOME: folder, HOME: folder, TEMPORAL_PROFILE: 'default' }).TEMPORAL_ADDRESS,
        'other.example.com:7233',
      )
      const { TEMPORAL_ADDRESS, TEMPORAL_NAMESPACE } = readConfig({ XDG_CONFIG_HOME: folder, HOME: folder })
      assert.deepEqual([TEMPORAL_ADDRESS, TEMPORAL_NAMESPACE], [undefined, 'default'])
    })

    it('are refused if the profile does not exist', () =>
      assert.throws(() => readConfig({ ...env, TEMPORAL_PROFILE: 'none' }), {
        name: 'ConfigError',
        message: /^TEMPORAL_CONFIG_FILE or TEMPORAL_PROFILE is invalid: /,
      }))
  })
})
