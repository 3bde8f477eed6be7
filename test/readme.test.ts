import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { startStack, type TestStack } from './support/stack.ts'

const read = (path: string) => readFileSync(new URL(`../${path}`, import.meta.url), 'utf8')

describe('the settings table of the README', () => {
  it('lists exactly the settings that the code reads', () => {
    const configs = ['db/process/config.ts', 'api/config.ts', 'worker/config.ts', 'worker/dev/config.ts']
    const settings = configs.flatMap((path) => [...read(path).matchAll(/^ {2}([A-Z][A-Z_]+):/gm)])
    const section = read('README.md').split('## Settings')[1]!.split('\n## ')[0]!
    const rows = section.split('\n').filter((line) => /^\| `[A-Z]/.test(line))
    const named = rows.flatMap((row) => [...row.split('|')[1]!.matchAll(/`([A-Z_]+)`/g)])
    const sorted = (matches: RegExpMatchArray[]) => [...new Set(matches.map((match) => match[1]!))].sort()
    assert.deepEqual(sorted(named), sorted(settings))
  })
})

describe('the tour of the README', function () {
  this.timeout(120_000)
  let stack: TestStack
  let folder: string

  before(async () => {
    folder = mkdtempSync(join(tmpdir(), 'agx-tour-'))
    stack = await startStack({ env: { ALLOW_INSECURE_WEBHOOKS: 'true', EGRESS_ALLOW: '127.0.0.0/8' } })
  })
  after(async () => {
    await stack?.stop()
    rmSync(folder, { recursive: true, force: true })
  })

  it('works as documented when pasted', async () => {
    const tour = read('README.md').split('## Five minutes')[1]!.split('\n## ')[0]!
    const blocks = [...tour.matchAll(/^```sh\n([\s\S]*?)^```$/gm)].map((match) => match[1]!)
    const script = blocks.join('\n').replaceAll('http://localhost:8080', stack.apiUrl)
    const env = { ...process.env, KEY: stack.key, PASSWORD: stack.owner.password }
    const { stdout } = await promisify(execFile)('bash', ['-e', '-c', script], { cwd: folder, env })
    if (process.env.SHOW_TOUR) process.stdout.write(stdout)
    assert.match(stdout, /"first_name":"Ada"/)
    assert.match(stdout, /"total":1/)
    assert.match(stdout, /unknown field/)
    assert.match(stdout, /"index":0,"op":"upsert","status":200/)
    assert.match(
      stdout,
      /^Alan;alan@;gold;line 3: E-Mail: must be an email address, such as ada@example.com/m,
    )
    assert.match(stdout, /"email":"joan@example.com","custom_fields":{"tier":"gold"}/)
    assert.match(stdout, /"valid":true/)
    assert.match(stdout, /"hi":"ADA"/)
    assert.match(stdout, /<mark>Refunds<\/mark>/)
    assert.match(stdout, /"success":true/)
    assert.match(stdout, /"status":"completed"/)
    for (const event of ['contact.created', 'contact.updated', 'workflow.completed'])
      assert.match(stdout, new RegExp(`^[0-9a-z_-]+ ${event}$`, 'm'))
  })
})
