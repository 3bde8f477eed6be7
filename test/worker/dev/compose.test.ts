import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { parse } from 'yaml'
import { serverArguments } from '../../../worker/dev/temporal-server.ts'

const text = readFileSync(new URL('../../../compose.yaml', import.meta.url), 'utf8')
const { services } = parse(text, { merge: true })

describe('compose.yaml', () => {
  it("has no default for a secret, and gives the owner's login to migrations only", () => {
    for (const [name] of text.matchAll(/\$\{\w*(PASSWORD|KEY)\b[^}]*\}/g))
      assert.doesNotMatch(name, /:-[^}]/, name)
    for (const name of ['POSTGRES_PASSWORD', 'APP_PASSWORD', 'SYSTEM_PASSWORD', 'SECRETS_KEY'])
      assert.match(text, new RegExp(`\\$\\{${name}:\\?`), name)
    for (const name of ['api', 'worker']) {
      assert.doesNotMatch(JSON.stringify(services[name].environment), /POSTGRES_PASSWORD|OWNER|\/\/postgres:/)
      assert.match(services[name].environment.DATABASE_SYSTEM_URL, /agx_system/)
    }
    assert.match(services.migrate.environment.DATABASE_OWNER_URL, /\/\/postgres:/)
  })

  it('starts Temporal with the settings of npm start', () => {
    const here = serverArguments({ dbFile: '/data/temporal.db', port: 7233, uiPort: 8233 })
    assert.deepEqual(
      services.temporal.command,
      // In a container it must be reachable from other containers.
      here.map((argument) => (argument === '127.0.0.1' ? '0.0.0.0' : argument)),
    )
  })
})
