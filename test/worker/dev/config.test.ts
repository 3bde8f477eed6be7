import assert from 'node:assert/strict'
import { readConfig } from '../../../worker/dev/config.ts'

const wrong: [settings: Record<string, string>, line: string][] = [
  [{ PORT: 'http' }, 'PORT must be a port number, 1 to 65535'],
  [{ WORKER_PORT: '0' }, 'WORKER_PORT must be a port number, 1 to 65535'],
  [{ TEMPORAL_UI_PORT: '65536' }, 'TEMPORAL_UI_PORT must be a port number, 1 to 65535'],
  [{ TRUSTED_PROXIES: 'two' }, 'TRUSTED_PROXIES must be a whole number, 0 to 10'],
  [{ DATABASE_POOL: '1.5' }, 'DATABASE_POOL must be a whole number, 2 to 200'],
  [{ TEMPORAL_TASK_QUEUE: 'a b' }, 'TEMPORAL_TASK_QUEUE may contain only letters, digits and . _ - : /'],
  [{ TEMPORAL_ADDRESS: 'localhost' }, 'TEMPORAL_ADDRESS must be a host and port such as 127.0.0.1:7233'],
  [{ PUBLIC_URL: 'agx.example.com' }, 'PUBLIC_URL must be a URL such as https://agx.example.com'],
  [{ ALLOW_INSECURE_WEBHOOKS: 'perhaps' }, 'ALLOW_INSECURE_WEBHOOKS must be true or false'],
  [{ NODE_ENV: 'prod' }, 'NODE_ENV must be one of development, production, test'],
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
})
