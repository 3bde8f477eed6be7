import assert from 'node:assert/strict'
import { execFileSync, spawnSync } from 'node:child_process'
import { cpSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { pathOf, SNIPPETS, type Snippet, textOf } from '../../../api/http/receiver-guide/snippets.ts'
import { signatureHeaders } from '../../../workflows/shared/webhook-signature.ts'
import { withApi } from '../../support/with-api.ts'

/** One request, which the programs below read from stdin. They print `accepted` or `refused`, one line per request. */
interface Case {
  secret: string
  headers: Record<string, string>
  body: string
}

const secret = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw/+8='
const other = 'whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD'
const body = JSON.stringify({ id: 'e', event: 'contact.created', data: { name: 'Zoë & <Söhne>' } })
const request = (secrets: string[], ageSeconds = 0): Case => ({
  secret,
  headers: signatureHeaders(secrets, {
    id: 'msg_1',
    timestamp: new Date(Date.now() - ageSeconds * 1_000),
    body,
  }),
  body,
})
const CASES: [what: string, accepted: boolean, one: () => Case][] = [
  ['a genuine request', true, () => request([secret])],
  ['both signatures of a rotation', true, () => request([other, secret])],
  ['another secret', false, () => request([other])],
  ['a changed body', false, () => ({ ...request([secret]), body: body.replace('Zoë', 'Eve') })],
  ['an old request', false, () => request([secret], 600)],
]

/** The commands that run the snippets: a program next to each snippet calls it for each case. */
const LANGUAGES: Record<string, { program: string; name: string; command: (folder: string) => string[] }> = {
  mjs: {
    name: 'main.mjs',
    program: `import { readFileSync } from 'node:fs'
import { verify } from './snippet.mjs'
for (const { secret, headers, body } of JSON.parse(readFileSync(0)))
  try { console.log(verify(secret, headers, body).event === 'contact.created' ? 'accepted' : 'other') } catch { console.log('refused') }`,
    command: () => ['node', 'main.mjs'],
  },
  py: {
    name: 'main.py',
    program: `import json, sys
from snippet import verify
for one in json.load(sys.stdin):
    try:
        event = verify(one["secret"], one["headers"], one["body"].encode())
        print("accepted" if event["event"] == "contact.created" else "other")
    except Exception:
        print("refused")`,
    command: () => ['python3', 'main.py'],
  },
  go: {
    name: 'main.go',
    program: `package main
import ("encoding/json"; "fmt"; "os")
func main() {
	var cases []struct { Secret, Body string; Headers map[string]string }
	if err := json.NewDecoder(os.Stdin).Decode(&cases); err != nil { panic(err) }
	for _, one := range cases {
		header := func(name string) string { return one.Headers[name] }
		if Verify(one.Secret, header, []byte(one.Body)) == nil { fmt.Println("accepted") } else { fmt.Println("refused") }
	}
}`,
    command: () => ['go', 'run', 'main.go', 'snippet.go'],
  },
  php: {
    name: 'main.php',
    program: `<?php
@include 'vendor/autoload.php';
require 'snippet.php';
foreach (json_decode(file_get_contents('php://stdin'), true) as $one) {
    try { echo verify($one['secret'], $one['headers'], $one['body'])['event'] === 'contact.created' ? "accepted\\n" : "other\\n"; }
    catch (Throwable $e) { echo "refused\\n"; }
}`,
    command: () => ['php', 'main.php'],
  },
}

/** Whether the language, and the library of the snippet, are installed. The test installs nothing. */
function isInstalled({ file, install }: Snippet): boolean {
  const finds = (command: string, ...parameters: string[]) => spawnSync(command, parameters).status === 0
  const extension = file.split('.').at(-1)!
  if (extension === 'mjs') return true
  if (extension === 'py') return finds('python3', '-c', install ? 'import standardwebhooks' : 'import hmac')
  if (extension === 'go') return !install && finds('go', 'version')
  return !install && finds('php', '-v')
}

const CHARACTERS: Record<string, string> = {
  '&lt;': '<',
  '&gt;': '>',
  '&quot;': '"',
  '&#39;': "'",
  '&amp;': '&',
}

describe('the page for receivers', () => {
  const suite = withApi()

  it('is public, without scripts, and shows every snippet', async () => {
    const { status, headers, body } = await suite.api.request('GET', '/docs/webhooks', { key: null })
    assert.equal(status, 200)
    assert.match(headers.get('content-type')!, /^text\/html/)
    assert.match(headers.get('content-security-policy')!, /default-src 'none'/)
    assert.doesNotMatch(body, /<script/)
    const text = body.replace(/&(?:lt|gt|quot|#39|amp);/g, (entity: string) => CHARACTERS[entity]!)
    for (const snippet of SNIPPETS) assert.ok(text.includes((await textOf(snippet)).trimEnd()), snippet.file)
  })

  for (const snippet of SNIPPETS)
    it(`${snippet.title}: accepts genuine requests only`, function () {
      if (!isInstalled(snippet)) return this.skip()
      const extension = snippet.file.split('.').at(-1)!
      const { name, program, command } = LANGUAGES[extension]!
      // A JavaScript snippet finds the library among the packages of this project.
      const parent =
        extension === 'mjs' ? fileURLToPath(new URL('../../../node_modules/', import.meta.url)) : tmpdir()
      const folder = mkdtempSync(join(parent, '.agx-snippet-'))
      try {
        cpSync(pathOf(snippet), join(folder, `snippet.${extension}`))
        writeFileSync(join(folder, name), program)
        const [file, ...parameters] = command(folder)
        const input = JSON.stringify(CASES.map(([, , one]) => one()))
        const printed = execFileSync(file!, parameters, { cwd: folder, input, encoding: 'utf8' })
        const found = printed.trim().split('\n')
        assert.deepEqual(
          CASES.map(([what], n) => `${what}: ${found[n]}`),
          CASES.map(([what, accepted]) => `${what}: ${accepted ? 'accepted' : 'refused'}`),
        )
      } finally {
        rmSync(folder, { recursive: true, force: true })
      }
    })
})
