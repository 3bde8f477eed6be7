import assert from 'node:assert/strict'
import { createLogger } from '../../../db/process/log.ts'

describe('the log', () => {
  /** The line that a logger writes. */
  function written(log: (logger: ReturnType<typeof createLogger>) => void) {
    const lines: string[] = []
    log(createLogger('test', 'info', { write: (line) => void lines.push(line) }))
    assert.equal(lines.length, 1)
    return JSON.parse(lines[0]!)
  }

  it('masks members with secret names, three levels deep', () => {
    const { headers, list, run_id } = written((logger) =>
      logger
        .child({ run_id: 'r' })
        .info({ headers: { 'X-Api-Key': 'hunter2', accept: 'text/plain' }, list: [{ password: 'hunter2' }] }),
    )
    assert.deepEqual(headers, { 'X-Api-Key': '[masked]', accept: 'text/plain' })
    assert.deepEqual([list, run_id], [[{ password: '[masked]' }], 'r'])
  })

  it('logs errors with keys and passwords redacted', () => {
    const key = `agx_${'a'.repeat(46)}`
    const { err } = written((logger) =>
      logger.error({ err: new Error(`no ${key} at postgres://agx:hunter2@host/db`) }, 'failed'),
    )
    assert.equal(err.type, 'Error')
    assert.equal(err.message, 'no agx_[redacted] at postgres://agx:[redacted]@host/db')
    assert.match(err.stack, /log\.test\.ts/)
  })
})
