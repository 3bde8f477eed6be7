import { NodeError } from '../language/node-error.ts'
import type { Redactor } from '../shared/redactor.ts'
import type { Port } from './define.ts'

/** Receives one line about a call. */
export type Report = (line: string) => void

/** The same effect, which reports each call before it is made, then its result and duration. */
export function narrated<Api extends object>(port: Port<Api>, api: Api, report: Report): Api {
  return each(port, (method, words) => async (...args) => {
    report(words.call(...args))
    const started = performance.now()
    const elapsed = () => `${Math.round(performance.now() - started)} ms`
    try {
      const result = await (api as Methods)[method]!(...args)
      report(`${words.result(result, ...args)} (${elapsed()})`)
      return result
    } catch (error) {
      if (!isNotMade(error)) report(`failed after ${elapsed()}`)
      throw error
    }
  })
}

/** The same effect with redacted results and errors: the whole secrets are masked before a node uses parts of them. */
export function redacted<Api extends object>(port: Port<Api>, api: Api, redactor: Redactor): Api {
  return each(port, (method) => async (...args) => {
    try {
      return redactor.value(await (api as Methods)[method]!(...args))
    } catch (error) {
      if (!(error instanceof NodeError)) throw error
      const { code, message, retryable, details, retryAfterMs, waits } = error
      throw new NodeError(code, redactor.text(message), {
        retryable,
        retryAfterMs,
        waits,
        details: redactor.value(details),
      })
    }
  })
}

/** An effect that only reports the calls. A call never returns, because its result is unknown. */
export function dry<Api extends object>(port: Port<Api>, report: Report): Api {
  return each(port, (_, words) => (...args) => {
    report(words.call(...args))
    return new Promise(() => {})
  })
}

const NOT_MADE = 'not_made_in_test'

/** Whether a node failed because an effect of `notMade` was called. */
export const isNotMade = (error: unknown): boolean =>
  typeof error === 'object' && error !== null && 'code' in error && error.code === NOT_MADE

/** An effect whose calls are not made: each fails its node, so that a test can answer in its place. */
export function notMade<Api extends object>(port: Port<Api>): Api {
  return each(port, () => async () => {
    throw new NodeError(NOT_MADE, 'A test makes no calls.')
  })
}

type Method = (...args: unknown[]) => Promise<unknown>
type Methods = Record<string, Method>
interface AnyWords {
  call(...args: unknown[]): string
  result(result: unknown, ...args: unknown[]): string
}

/** An object with the methods of a port, whose types TypeScript cannot follow here. */
function each<Api extends object>(port: Port<Api>, make: (method: string, words: AnyWords) => Method): Api {
  const methods = Object.entries<AnyWords>(port.words as Record<string, AnyWords>)
  return Object.fromEntries(methods.map(([name, words]) => [name, make(name, words)])) as Api
}
