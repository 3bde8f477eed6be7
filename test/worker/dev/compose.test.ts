import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { parse } from 'yaml'
import { startVariables } from '../../../worker/dev/config.ts'
import { DYNAMIC_CONFIG } from '../../../worker/dev/temporal-server.ts'
import { attributeDefinitions } from '../../../worker/search-attributes.ts'

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

  it('starts Temporal with the settings and the search attributes of npm start', () => {
    const file = services.temporal.volumes[0].split(':')[0]
    const dynamic = parse(readFileSync(new URL(`../../../${file}`, import.meta.url), 'utf8'))
    assert.deepEqual(
      Object.fromEntries(
        Object.entries(dynamic).map(([key, values]) => [key, (values as { value: unknown }[])[0]!.value]),
      ),
      DYNAMIC_CONFIG,
    )
    const [script] = services['temporal-namespace'].command
    for (const definition of attributeDefinitions) {
      const [name, type] = definition.split('=')
      assert.ok(script.includes(name), name)
      if (type !== 'Keyword') assert.ok(script.includes(`--name ${name} --type ${type}`), definition)
    }
  })

  it('runs the image without rights, with a read-only root, and each entry of it exists', () => {
    for (const name of ['migrate', 'api', 'worker']) {
      const { read_only, cap_drop, command, environment } = services[name]
      assert.deepEqual([read_only, cap_drop], [true, ['ALL']], name)
      assert.ok(existsSync(new URL(`../../../${command[0]}`, import.meta.url)), command[0])
      for (const setting of Object.keys(environment))
        assert.ok(Object.hasOwn(startVariables.shape, setting), `${setting} is read by no process`)
    }
    const image = readFileSync(new URL('../../../Dockerfile', import.meta.url), 'utf8')
    assert.match(image, /^USER node$/m)
    for (const [, setting] of image.matchAll(/([A-Z][A-Z_]+)=/g))
      assert.ok(
        ['COMMIT', 'NODE_ENV', 'TZ', 'MALLOC_ARENA_MAX'].includes(setting!) ||
          Object.hasOwn(startVariables.shape, setting!),
        setting,
      )
  })
})
