import type { Port } from './define.ts'

/** Takes one line about a call. */
export type Say = (line: string) => void

/** The same effect, which says each call before it is made, then how it went and how long it took. */
export function narrated<Api extends object>(port: Port<Api>, api: Api, say: Say): Api {
  return each(port, (method, words) => async (...args) => {
    say(words.call(...args))
    const started = performance.now()
    const elapsed = () => `${Math.round(performance.now() - started)} ms`
    try {
      const result = await (api as Methods)[method]!(...args)
      say(`${words.result(result, ...args)} (${elapsed()})`)
      return result
    } catch (error) {
      say(`gave up after ${elapsed()}`)
      throw error
    }
  })
}

/** An effect that only says what would be called. A call never returns, for nobody knows its result. */
export function dry<Api extends object>(port: Port<Api>, say: Say): Api {
  return each(port, (_, words) => (...args) => {
    say(words.call(...args))
    return new Promise(() => {})
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
