import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { parse } from 'yaml'
import { serverArguments } from '../../../worker/dev/temporal-server.ts'

describe('compose.yaml', () => {
  it('starts Temporal with the settings of npm start', () => {
    const text = readFileSync(new URL('../../../compose.yaml', import.meta.url), 'utf8')
    const { services } = parse(text, { merge: true })
    const here = serverArguments({ dbFile: '/data/temporal.db', port: 7233, uiPort: 8233 })
    assert.deepEqual(
      services.temporal.command,
      // In a container it must be reachable from other containers.
      here.map((argument) => (argument === '127.0.0.1' ? '0.0.0.0' : argument)),
    )
  })
})
