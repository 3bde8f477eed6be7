import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { type JSValueHandle, QuickJS, type QuickJSOptions } from 'quickjs-wasi'
import { CODE } from '../../workflows/shared/limits.ts'

/** Runs in a thread: code of a tenant, in its own instance of QuickJS. */

const FILE = 'code.js'

/** The lines before the first line of the code. */
const LINES_BEFORE = 1

/** The compiler has no types of the global object that Node.js has. */
declare const WebAssembly: { Module: new (bytes: Uint8Array) => NonNullable<QuickJSOptions['wasm']> }

const path = createRequire(import.meta.url).resolve('quickjs-wasi/quickjs.wasm')
const wasm = new WebAssembly.Module(readFileSync(path))

export interface CodeInput {
  code: string
  /** JSON. */
  inputs: string
  seed: string
  /** Milliseconds since 1970. */
  now: number
  /** The time limit. */
  milliseconds: number
}

export interface CodeFailure {
  /** `thrown`: the code threw, or has a syntax error. `result`: the result cannot be passed on. */
  kind: 'time' | 'memory' | 'thrown' | 'result'
  message: string
  line?: number
  column?: number
}

export interface CodeOutcome {
  failure?: CodeFailure
  /** JSON; absent if the code returned nothing. */
  result?: string | undefined
  log: string[]
}

/** Runs the code. Only text leaves the instance, whose memory is freed at the end. */
export async function evaluate({ code, inputs, seed, now, milliseconds }: CodeInput): Promise<CodeOutcome> {
  const log: string[] = []
  const until = performance.now() + milliseconds
  let isOver = false
  // QuickJS seeds its random numbers from the clock when it starts.
  let clock = BigInt(`0x${createHash('sha256').update(seed).digest('hex').slice(0, 12)}`)
  try {
    const vm = await QuickJS.create({
      wasm,
      memoryLimit: CODE.memoryBytes,
      timezoneOffset: 0,
      interruptHandler() {
        isOver ||= performance.now() > until
        return isOver
      },
      wasi: (memory: { buffer: ArrayBuffer }) => ({
        clock_time_get(_id: number, _precision: bigint, address: number) {
          new DataView(memory.buffer).setBigUint64(address, clock * 1_000_000n, true)
          return 0
        },
      }),
    })
    clock = BigInt(now)
    const outcome = run(vm, { code, inputs }, log)
    return isOver ? { failure: OVER, log } : { ...outcome, log }
  } catch (error) {
    if (isOver) return { failure: OVER, log }
    return { failure: thrown(error as Error), log }
  }
}

const OVER: CodeFailure = { kind: 'time', message: 'it takes too long' }

/** Evaluated before the code, which cannot change the functions that it uses. */
const PRELUDE = `((write, succeed, fail) => {
  const { parse, stringify } = JSON
  const asText = String
  const text = (value) => {
    if (typeof value === 'string') return value
    try { return value instanceof Error ? asText(value) : stringify(value) ?? asText(value) } catch { return '?' }
  }
  const log = (...values) => write(values.map(text).join(' '))
  globalThis.console = { log, info: log, debug: log, warn: log, error: log }
  // Without Intl they ignore the locale and the options, and would write another text than the one that is meant.
  for (const [type, names] of [[Number, ['toLocaleString']], [BigInt, ['toLocaleString']], [Date, ['toLocaleString', 'toLocaleDateString', 'toLocaleTimeString']]])
    for (const name of names) {
      const plain = type.prototype[name]
      type.prototype[name] = function (...wanted) {
        if (wanted.some((one) => one !== undefined))
          throw new TypeError(name + ' knows no locales and no options here (there is no Intl): ' + (type === Date ? 'use a node format_date' : 'write toFixed(2), or the separators by replace'))
        return plain.call(this)
      }
    }
  const failed = (kind, error) => {
    if (error instanceof Error) fail(kind, text(error.name), text(error.message), text(error.stack))
    else fail(kind, '', 'threw ' + text(error), '')
  }
  return async (main, inputs) => {
    let value
    try { value = await main(parse(inputs)) } catch (error) { return failed('thrown', error) }
    try { succeed(value === undefined ? 'null' : stringify(value)) } catch (error) { failed('result', error) }
  }
})`

type Outcome = Pick<CodeOutcome, 'failure' | 'result'>

function run(vm: QuickJS, { code, inputs }: Pick<CodeInput, 'code' | 'inputs'>, log: string[]): Outcome {
  let outcome: Outcome = {
    failure: { kind: 'thrown', message: 'the code waits for a promise that nothing resolves' },
  }
  const textOf = (value?: JSValueHandle) => (value?.isUndefined ? undefined : value?.toString())
  const host = (name: string, call: (...values: (string | undefined)[]) => void) =>
    vm.newFunction(name, (...values: JSValueHandle[]) => {
      call(...values.map(textOf))
      return vm.undefined
    })
  const write = host('write', (line = '') => {
    if (log.length < CODE.logLines) log.push(line.slice(0, CODE.logCharacters))
  })
  const succeed = host('succeed', (result) => {
    outcome = result === undefined ? { failure: NO_JSON } : withinLimit(result)
  })
  const fail = host('fail', (kind, name = '', message = '', stack = '') => {
    const failure = thrown({ name, message, stack })
    outcome = { failure: kind === 'result' ? { kind, message: failure.message } : failure }
  })
  const start = vm.callFunction(vm.evalCode(PRELUDE), vm.undefined, write, succeed, fail)
  const main = vm.evalCode(`(async (inputs) => {\n${code}\n})`, FILE)
  vm.callFunction(start, vm.undefined, main, vm.newString(inputs))
  vm.executePendingJobs()
  return outcome
}

const NO_JSON: CodeFailure = {
  kind: 'result',
  message: 'JSON cannot hold what the code has returned: return an object, a list, a text or a number',
}

const withinLimit = (result: string): Outcome =>
  result.length <= CODE.resultCharacters
    ? { result }
    : {
        failure: {
          kind: 'result',
          message: `the result has ${result.length} characters of JSON, at most ${CODE.resultCharacters} are taken`,
        },
      }

type Thrown = Pick<Error, 'name' | 'message'> & { stack?: string | undefined }

/** An error of the code, or of QuickJS itself. */
function thrown({ name, message, stack = '' }: Thrown): CodeFailure {
  if (name === 'InternalError' && message === 'out of memory') return { kind: 'memory', message }
  // The stack of WebAssembly ends before that of QuickJS.
  if (name === 'RuntimeError' || (name === 'RangeError' && /call stack/.test(message)))
    return { kind: 'thrown', message: 'the code calls itself too deeply' }
  const [, line, column] = PLACE.exec(stack) ?? []
  const place = line === undefined ? {} : { line: Number(line) - LINES_BEFORE, column: Number(column) }
  const root = /^'?(\w+)'? is not defined/.exec(message)?.[1] ?? ''
  const hint = ROOTS.includes(root) ? ': give the value in `inputs` of the node, and read inputs.<name>' : ''
  const said = name === '' ? message : `${name}: ${message}`
  return { kind: 'thrown', message: `${said.slice(0, 1_000)}${hint}`, ...place }
}

const PLACE = new RegExp(`\\b${FILE.replace('.', '\\.')}:(\\d+):(\\d+)`)

/** The roots of placeholders, which authors may expect in code too. */
const ROOTS = ['trigger', 'nodes', 'item', 'index', 'previous', 'run', 'org', 'env', 'secrets']
