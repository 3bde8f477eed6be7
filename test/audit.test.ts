import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

const ADVISORY = {
  id: 1,
  title: 'Everything is possible',
  url: 'https://example.com/1',
  severity: 'high',
  vulnerable_versions: '*',
}

describe('npm run audit', () => {
  let registry: Server
  let cache: string
  let answer: { status: number; body: object }
  before(async () => {
    // npm keeps what it has learnt of an advisory.
    cache = mkdtempSync(join(tmpdir(), 'agx-audit-'))
    registry = createServer((request, response) => {
      request.resume().on('end', () => {
        const { status, body } = request.method === 'POST' ? answer : { status: 404, body: {} }
        response.writeHead(status, { 'Content-Type': 'application/json' }).end(JSON.stringify(body))
      })
    })
    await new Promise<void>((resolve) => registry.listen(0, '127.0.0.1', resolve))
  })
  after(() => {
    registry.close()
    rmSync(cache, { recursive: true })
  })

  const audit = (...options: string[]): Promise<{ code: number; output: string }> =>
    new Promise((resolve) => {
      const { port } = registry.address() as AddressInfo
      const child = execFile(
        process.execPath,
        ['--import', 'tsx', 'test/support/audit.ts', ...options],
        {
          cwd: fileURLToPath(new URL('../', import.meta.url)),
          env: {
            ...process.env,
            NODE_V8_COVERAGE: '',
            npm_config_cache: cache,
            npm_config_registry: `http://127.0.0.1:${port}`,
          },
        },
        (_, out, errors) => resolve({ code: child.exitCode!, output: out + errors }),
      )
    })

  it('exits with 0 if the registry knows no vulnerability', async () => {
    answer = { status: 200, body: {} }
    const { code, output } = await audit()
    assert.equal(code, 0, output)
    assert.match(output, /no known vulnerability/)
  })

  it('exits with 1 for one of high severity, also in npm run check', async () => {
    answer = { status: 200, body: { koa: [ADVISORY] } }
    for (const { code, output } of await Promise.all([audit(), audit('--if-reachable')])) {
      assert.equal(code, 1, output)
      assert.match(output, /^koa : high: Everything is possible \(https:\/\/example\.com\/1\)$/m)
    }
  })

  it('exits with 2 if the registry cannot be asked, of which npm run check only warns', async () => {
    answer = { status: 405, body: {} }
    const [strict, lenient] = await Promise.all([audit(), audit('--if-reachable')])
    assert.deepEqual([strict.code, lenient.code], [2, 0])
    for (const { output } of [strict, lenient]) assert.match(output, /NOT checked for vulnerabilities: 405/)
  })
})

describe('npm run sbom', () => {
  it('lists what runs in production, with its versions, as CycloneDX', async () => {
    const root = fileURLToPath(new URL('../', import.meta.url))
    const options = { cwd: root, maxBuffer: 64 * 1024 ** 2, env: { ...process.env, NODE_OPTIONS: '' } }
    const { stdout } = await promisify(execFile)('npm', ['run', '--silent', 'sbom'], options)
    const { bomFormat, components } = JSON.parse(stdout)
    assert.equal(bomFormat, 'CycloneDX')
    const versions = new Map<string, string>(
      components.map(({ name, version }: { name: string; version: string }) => [name, version]),
    )
    assert.equal(
      new Set(components.map((one: object) => (one as { 'bom-ref': string })['bom-ref'])).size,
      components.length,
    )
    const koa = components.find(({ name }: { name: string }) => name === 'koa')
    assert.match(koa.purl, /^pkg:npm\/koa@\d/)
    assert.match(koa.hashes[0].content, /^[0-9a-f]{128}$/)
    const { dependencies, devDependencies } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
    for (const name of Object.keys(dependencies)) assert.match(versions.get(name) ?? '', /^\d+\./, name)
    const only = Object.keys(devDependencies).filter((name) => !name.startsWith('@types/'))
    assert.deepEqual(
      only.filter((name) => versions.has(name)),
      [],
    )
  })
})
