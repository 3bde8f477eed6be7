import { CodeRunner } from '../../../activities/sandbox/runner.ts'
import { CODE } from '../../../workflows/shared/limits.ts'
import type { Family } from '../family.ts'

/** Code that returns something else than false or null if it gets at the host. */
const ESCAPES = [
  'return typeof process !== "undefined"',
  'return typeof require !== "undefined"',
  'return typeof module !== "undefined"',
  'return typeof Buffer !== "undefined"',
  'return typeof fetch !== "undefined"',
  'return typeof XMLHttpRequest !== "undefined" || typeof WebSocket !== "undefined"',
  'return typeof WebAssembly !== "undefined"',
  'return typeof SharedArrayBuffer !== "undefined" && typeof Atomics !== "undefined" && typeof Worker !== "undefined"',
  'return typeof std !== "undefined" || typeof os !== "undefined" || typeof bjson !== "undefined"',
  'return typeof Deno !== "undefined" || typeof Bun !== "undefined"',
  'return typeof global !== "undefined" && global.process !== undefined',
  'return globalThis.process !== undefined',
  'return this?.process !== undefined',
  'return Function("return typeof process")() !== "undefined"',
  'return (() => {}).constructor("return typeof process")() !== "undefined"',
  'return (async () => {}).constructor("return typeof process")() instanceof Promise ? false : true',
  'return (function* () {}).constructor("return typeof process")().next().value !== "undefined"',
  'return [].constructor.constructor("return typeof process")() !== "undefined"',
  'return inputs.constructor.constructor("return typeof process")() !== "undefined"',
  'return inputs.deep.constructor.constructor("return typeof process")() !== "undefined"',
  'return console.log.constructor("return typeof process")() !== "undefined"',
  'return console.constructor.constructor("return typeof require")() !== "undefined"',
  'return (0, eval)("typeof process") !== "undefined"',
  'return new Function("return this")().process !== undefined',
  'try { null.x } catch (e) { return e.constructor.constructor("return typeof process")() !== "undefined" }',
  'Error.prepareStackTrace = (_, frames) => frames; try { null.x } catch (e) { return Array.isArray(e.stack) && e.stack.some((f) => f.getThis?.()?.process) }',
  'return await import("fs").then(() => true, () => false)',
  'return await import("node:child_process").then(() => true, () => false)',
  'return await import("std").then(() => true, () => false)',
  'return await import("os").then(() => true, () => false)',
  'return await Function("return import(\'fs\')")().then(() => true, () => false)',
  'return Reflect.ownKeys(globalThis).some((k) => /^(process|require|fetch|.*socket|.*worker|os|std)$/i.test(String(k)))',
  'Object.prototype.polluted = 1; return false',
  'inputs.__proto__.polluted = 1; return false',
  'JSON.parse = () => ({ escaped: true }); JSON.stringify = () => "{\\"escaped\\":true}"; return false',
  'Array.prototype.map = Array.prototype.push = () => { throw 1 }; return false',
  'Object.defineProperty(globalThis, "result", { get() { return { escaped: true } } }); return false',
  'return { toJSON() { return typeof process !== "undefined" } }.toJSON()',
  'return new Proxy({}, { ownKeys() { return ["x"] }, get() { return typeof process !== "undefined" } }).x',
  'return Date.now() > Date.parse("2026-03-02")',
]

/** Code that must end by a limit, and with it nothing else. */
const ENDLESS = [
  'for (;;) {}',
  'while (true) await null',
  'return await new Promise(() => {})',
  'const a = []; for (;;) a.push("x".repeat(1e6))',
  'return "x".repeat(2 ** 30)',
  'const f = () => f(); f()',
  'return new Array(2 ** 32 - 1).fill(0)',
  'return /(a+)+$/.test("a".repeat(40) + "!")',
  'return JSON.parse("[".repeat(1e6))',
  'return new ArrayBuffer(2 ** 33)',
  'try { for (;;) {} } finally { for (;;) {} }',
]

export const sandbox: Family = {
  name: 'sandbox',
  title: 'code that leaves its sandbox',
  async run(_, tally) {
    const runner = new CodeRunner({ ms: 500, killMs: 1_500, waitMs: CODE.waitMs })
    const run = (code: string) =>
      runner.run('attacker', {
        code,
        inputs: { deep: [{ a: 1 }] },
        seed: 'attack',
        now: new Date('2026-03-01T12:00:00Z'),
      })
    try {
      for (const code of ESCAPES) {
        // An error ends the attempt too.
        const result = await run(code).then(
          (outcome) => outcome.result,
          () => null,
        )
        tally.attempt(result === false || result === null, `${code}: ${JSON.stringify(result)}`)
        const polluted = ({} as { polluted?: unknown }).polluted !== undefined
        tally.attempt(!polluted, `${code}: changed the prototypes of the host`)
      }
      for (const code of ENDLESS) {
        const ended = await run(code).then(
          ({ result }) => JSON.stringify(result) ?? 'undefined',
          (error: { code?: string }) => String(error.code),
        )
        tally.attempt(ended.length < 1_000_000, `${code}: ${ended.slice(0, 100)}`)
        const next = await resultAfter(() => run('return 1 + 1'))
        tally.attempt(next === 2, `${code}: the code after it gave ${next}`)
      }
    } finally {
      await runner.close()
    }
  },
}

const TRIES = 20

/**
 * The result of harmless code. A busy machine may not run it within the short limit of time, so it is tried again: if the
 * code before it still ran, no try would get the thread.
 */
async function resultAfter(run: () => Promise<{ result: unknown }>): Promise<unknown> {
  for (let left = TRIES; ; left--)
    try {
      return (await run()).result
    } catch (error) {
      if ((error as { code?: string }).code !== 'code_timeout' || left === 1) return String(error)
    }
}
