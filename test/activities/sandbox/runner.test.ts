import { deepEqual, equal, match, ok, rejects } from 'node:assert/strict'
import { withDeadline } from '../../../activities/deadline.ts'
import { CodeRunner } from '../../../activities/sandbox/runner.ts'
import type { NodeError } from '../../../workflows/language/node-error.ts'
import { CODE } from '../../../workflows/shared/limits.ts'

describe('code of a tenant', () => {
  const runner = new CodeRunner({ ms: 1_500, killMs: 3_000, waitMs: 20_000 })
  after(() => runner.close())

  const run = (code: string, inputs: Record<string, unknown> = {}, seed = 'run:node') =>
    runner.run('one', { code, inputs, seed, now: new Date('2026-03-01T12:00:00Z') })
  const result = async (code: string, inputs?: Record<string, unknown>) => (await run(code, inputs)).result
  const failure = async (code: string) => {
    let found: NodeError | undefined
    await rejects(run(code), (error: NodeError) => {
      found = error
      return true
    })
    return found!
  }

  it('reads its inputs, and returns any value of JSON', async () => {
    const inputs = { list: [1, 2, { ü: '🙂' }], __proto__: { a: 1 } }
    deepEqual(await result('return inputs', inputs), { list: inputs.list })
    equal(await result('await null; return inputs.list.length', inputs), 3)
    equal(await result('inputs.list // no more'), null)
    deepEqual(await result('return { at: new Date(0), none: undefined, n: NaN }'), {
      at: '1970-01-01T00:00:00.000Z',
      n: null,
    })
  })

  it('writes its log, a bounded one', async () => {
    const { log } = await run(
      'console.log("a", 1, { b: [2] }, null, undefined); console.error(new Error("no"))',
    )
    deepEqual(log, ['a 1 {"b":[2]} null undefined', 'Error: no'])
    const much = await run('for (let i = 0; i < 200; i++) console.log("x".repeat(1000))')
    deepEqual([much.log.length, much.log[99]!.length], [CODE.logLines, CODE.logCharacters])
  })

  it('is the same in each attempt: its time, its time zone, its random numbers', async () => {
    const code = 'return [Date.now(), new Date(2026, 0, 1).toISOString(), Math.random(), performance.now()]'
    const [now, local, random, elapsed] = (await result(code)) as unknown[]
    deepEqual([now, local], [Date.parse('2026-03-01T12:00:00Z'), '2026-01-01T00:00:00.000Z'])
    deepEqual(await result(code), [now, local, random, elapsed])
    const other = (await run(code, {}, 'run:other')).result as unknown[]
    ok(other[2] !== random)
  })

  it('refuses to write numbers and dates for a locale, which it would ignore', async () => {
    equal(await result('return (7030.8).toLocaleString()'), '7030.8')
    for (const code of [
      'return (7030.8).toLocaleString("en-US")',
      'return (1).toLocaleString(undefined, { style: "percent" })',
      'return 10n.toLocaleString("de-DE")',
    ])
      match((await failure(code)).message, /toLocaleString knows no locales.*toFixed\(2\)/)
    match(
      (await failure('return new Date().toLocaleDateString("de-DE", { timeZone: "Europe/Berlin" })')).message,
      /toLocaleDateString knows no locales.*format_date/,
    )
  })

  it('has no way out: no modules, no network, no timers, no host objects', async () => {
    const names = ['process', 'require', 'fetch', 'XMLHttpRequest', 'WebSocket', 'setTimeout', 'setInterval']
    const more = ['std', 'os', 'Deno', 'WebAssembly', 'Worker', 'module', 'Buffer']
    for (const name of [...names, ...more])
      equal(await result(`return typeof globalThis[${JSON.stringify(name)}]`), 'undefined', name)
    match((await failure('return import("node:fs")')).message, /could not load module/)
    equal(await result('return Function("return typeof process")()'), 'undefined')
    equal(await result('return console.log.constructor("return typeof process")()'), 'undefined')
  })

  it('leaves nothing behind for the next one', async () => {
    await run('globalThis.left = 1; Object.prototype.left = 2; JSON.stringify = () => "{}"')
    deepEqual(await result('return [typeof left, ({}).left ?? null]'), ['undefined', null])
  })

  const errors: [code: string, message: RegExp, line?: number][] = [
    ['const a = 1\nreturn a.b.c', /^line 2: TypeError: cannot read property 'c' of undefined/, 2],
    ['\n\nthrow new Error("stop here")', /^line 3: Error: stop here/, 3],
    ['throw { a: 1 }', /^threw \{"a":1\}/],
    ['return x +', /^line \d: SyntaxError/],
    ['return trigger.record', /trigger is not defined: give the value in `inputs`/, 1],
    ['await new Promise(() => {})', /waits for a promise that nothing resolves/],
    ['const f = () => 1 + f()\nreturn f()', /calls itself too deeply/],
    ['return JSON.parse("[".repeat(500000))', /calls itself too deeply/],
    ['queueMicrotask(() => { throw new Error("late") }); await null; await null; return 1', /late/],
  ]
  for (const [code, message, line] of errors)
    it(`fails with what is wrong and where: ${code.replaceAll('\n', '; ')}`, async () => {
      const error = await failure(code)
      deepEqual([error.code, error.retryable], ['code_failed', false])
      match(error.message, message)
      equal(error.details.line, line ?? error.details.line)
    })

  it('fails if JSON cannot hold its result', async () => {
    for (const code of [
      'return () => 1',
      'const a = {}; a.a = a; return a',
      'return 1n',
      'return "x".repeat(1e6)',
    ])
      equal((await failure(code)).code, 'invalid_result', code)
  })

  it('keeps the log of what has failed', async () => {
    deepEqual((await failure('console.log("so far"); throw new Error("x")')).details.log, ['so far'])
  })

  it('ends if it takes too long, and holds up nothing meanwhile', async () => {
    let turns = 0
    const timer = setInterval(() => turns++, 10)
    try {
      for (const code of ['for (;;) {}', 'for (;;) await null']) {
        const { code: found, message } = await failure(code)
        deepEqual([found, message], ['code_timeout', 'The code took longer than 1.5 s.'], code)
      }
    } finally {
      clearInterval(timer)
    }
    ok(turns > 10, `${turns} turns`)
  })

  it('is ended with its thread if it cannot be interrupted', async () => {
    const slow = 'const a = "x".repeat(3e7); for (let i = 0; i < 1e6; i++) a.lastIndexOf("y")'
    equal((await failure(slow)).code, 'code_timeout')
    equal(await result('return 1'), 1)
  })

  it('fails if it takes too much memory', async () => {
    for (const code of [
      'const a = []; for (;;) a.push(new Uint8Array(1e7))',
      'return new Uint8Array(2 ** 29)',
    ])
      equal((await failure(code)).code, 'code_out_of_memory', code)
  })

  it('counts its time from when it begins, not while other code of the organization runs', async () => {
    const endless = new CodeRunner({ ms: 600, killMs: 3_000, waitMs: 20_000 })
    const give = (organization: string, code: string) =>
      withDeadline(2_000, new AbortController().signal, (signal, _, hold) =>
        endless
          .run(organization, { code, inputs: {}, seed: 's', now: new Date() }, { signal, hold })
          .catch((error: NodeError) => error.code),
      )
    try {
      const others = Array.from({ length: 5 }, () => give('one', 'for (;;) {}'))
      deepEqual(await give('one', 'return 1'), { result: 1, log: [] })
      deepEqual(
        await Promise.all(others),
        Array.from({ length: 5 }, () => 'code_timeout'),
      )
    } finally {
      await endless.close()
    }
  })

  it('waits for its turn as long as it may, and says so', async () => {
    const impatient = new CodeRunner({ ms: 1_500, killMs: 3_000, waitMs: 500 })
    const program = { inputs: {}, seed: 's', now: new Date() }
    try {
      await impatient.run('one', { ...program, code: 'return 1' })
      const first = impatient.run('one', { ...program, code: 'for (;;) {}' }).catch(() => 'over')
      await rejects(impatient.run('one', { ...program, code: 'return 1' }), (error: NodeError) => {
        deepEqual([error.code, error.retryable], ['code_not_started', true])
        match(error.message, /not started within 0.5 s: other code of the organization/)
        return true
      })
      equal(await first, 'over')
    } finally {
      await impatient.close()
    }
  })

  it('is not begun once its attempt is over', async () => {
    const abort = new AbortController()
    const program = { inputs: {}, seed: 's', now: new Date() }
    const first = run('for (let i = 0; i < 1e6; i++); return 1')
    const second = runner.run('one', { ...program, code: 'return 2' }, { signal: abort.signal })
    abort.abort(new Error('cancelled'))
    await rejects(second, /cancelled/)
    equal((await first).result, 1)
  })
})
