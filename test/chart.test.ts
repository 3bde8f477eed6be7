import assert from 'node:assert/strict'
import { execFileSync, spawnSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { parse, parseAllDocuments } from 'yaml'
import { readConfig as readApiConfig } from '../api/config.ts'
import { startVariables } from '../worker/dev/config.ts'

const CHART = fileURLToPath(new URL('../deploy/helm/', import.meta.url))
const ROOT = new URL('../', import.meta.url)
const hasHelm = spawnSync('helm', ['version']).status === 0

describe('the Helm chart', () => {
  const read = (name: string) => readFileSync(CHART + name, 'utf8')
  const values = parse(read('values.yaml'))

  it('has the version of the service, and names only settings and entries that exist', () => {
    const { version } = JSON.parse(readFileSync(new URL('package.json', ROOT), 'utf8'))
    assert.equal(parse(read('Chart.yaml')).appVersion, version)
    const templates = readdirSync(`${CHART}templates`).map((name) => read(`templates/${name}`))
    const named = [
      ...Object.keys({ ...values.settings, ...values.secret.keys, ...values.ownerSecret.keys }),
      ...templates.flatMap((text) => [...text.matchAll(/"([A-Z]+_[A-Z_]+)"/g)].map(([, name]) => name!)),
    ]
    assert.deepEqual(
      named.filter((name) => !Object.hasOwn(startVariables.shape, name)),
      [],
    )
    for (const entry of ['api/main.ts', 'worker/main.ts', 'worker/commands/migrate.ts'])
      assert.ok(existsSync(new URL(entry, ROOT)), entry)
    assert.equal(values.shutdownDelay, readApiConfig({ DATABASE_URL: 'postgres://a@b/c' }).SHUTDOWN_DELAY)
  })

  it("is rendered: read-only pods without rights, the owner's login in the migration only", function () {
    if (!hasHelm) return this.skip()
    const text = execFileSync(
      'helm',
      [
        'template',
        'r',
        CHART,
        '--kube-version',
        '1.31.0',
        '--set',
        'secret.name=s',
        '--set',
        'settings.PUBLIC_URL=https://agx.example.com',
      ],
      { encoding: 'utf8' },
    )
    const made = parseAllDocuments(text).map((document) => document.toJS())
    const kinds = made.map(({ kind }) => kind).sort()
    assert.deepEqual(kinds, [
      'Deployment',
      'Deployment',
      'Job',
      'NetworkPolicy',
      'NetworkPolicy',
      'PodDisruptionBudget',
      'PodDisruptionBudget',
      'Service',
    ])
    for (const { kind, spec } of made.filter(({ kind }) => kind === 'Deployment' || kind === 'Job')) {
      const pod = spec.template.spec
      const [container] = pod.containers
      assert.equal(pod.securityContext.runAsNonRoot, true)
      assert.equal(container.securityContext.readOnlyRootFilesystem, true)
      assert.equal(JSON.stringify(pod).includes('OWNER'), kind === 'Job')
      if (kind === 'Deployment') assert.equal(pod.terminationGracePeriodSeconds, 25)
      // Each file that a setting names is one that is mounted.
      const files = pod.volumes.flatMap((volume: { projected?: { sources: unknown[] } }) =>
        (volume.projected?.sources ?? []).flatMap((source) =>
          (source as { secret: { items: { path: string }[] } }).secret.items.map(({ path }) => path),
        ),
      )
      const wanted = container.env
        .filter(({ name }: { name: string }) => name.endsWith('_FILE'))
        .map(({ value }: { value: string }) => value.replace('/secrets/', ''))
      assert.deepEqual(wanted.sort(), files.sort())
    }
  })
})
