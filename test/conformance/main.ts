import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { optionsOf } from '../support/command.ts'
import { temporaryFolder } from '../support/folder.ts'
import { startStack } from '../support/stack.ts'
import { startWithKey } from './with-key.ts'

const SUITE = '@modelcontextprotocol/conformance@0.2.0-alpha.12'
const REVISIONS = ['2026-07-28', '2025-11-25']
/** `fs.globSync`, which the suite imports. */
const NODE = 22

/**
 * `npm run conformance`: the protocol's own suite against /mcp of a started stack, once for each revision. Exits with 1
 * if a check fails that the revision's baseline does not name, or one that it names passes; with 2 if the suite cannot
 * run.
 */
const say = (line: string) => void process.stdout.write(`${line}\n`)
optionsOf('npm run conformance\n\nIt has no options.', {})
if (Number(process.versions.node.split('.')[0]) < NODE) {
  say(`cannot test the conformance: ${SUITE} needs Node ${NODE} or later, this is ${process.version}`)
  process.exit(2)
}
say('starting a stack …')
const stack = await startStack()
const server = await startWithKey(stack.apiUrl, stack.key)
let status = 0
try {
  for (const revision of REVISIONS) status = (await test(`${server.url}/mcp`, revision)) || status
} finally {
  server.close()
  await stack.stop()
}
process.exit(status)

/** @returns the exit code of the suite. */
async function test(url: string, revision: string): Promise<number> {
  say(`\n${revision}`)
  const baseline = fileURLToPath(new URL(`baseline-${revision}.yaml`, import.meta.url))
  const suite = spawn(
    'npx',
    ['-y', SUITE, 'server', '--url', url, '--requirements', revision, '--expected-failures', baseline],
    { cwd: temporaryFolder(), stdio: 'inherit' },
  )
  const [code] = await once(suite, 'exit')
  return code ?? 1
}
