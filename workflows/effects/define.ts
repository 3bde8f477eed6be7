import type { EffectClass } from '../definition/types.ts'

/**
 * The pure half of an effect, which the API can read too: where it is allowed, and how its calls read. `Api` is what
 * nodes find in their context: an object of async methods. Its implementation is in `activities/effects/`.
 */
export interface Port<Api extends object> {
  /** The classes of the nodes that may use it. */
  classes: readonly EffectClass[]
  /** Whether /v1 scopes guard what it reaches: a node type that uses it must then say which it needs. */
  scoped: boolean
  /** By method, in the log of a node test and in previews. */
  words: { [Method in keyof Api]: Words<Api[Method]> }
}

/** One line each. They hold names of fields, headers and parameters, and ids; never values, which may be secret. */
export type Words<Method> = Method extends (...args: infer Args) => Promise<infer Result>
  ? {
      /** What the call is about to do. */
      call(...args: Args): string
      /** What it did. */
      result(result: Result, ...args: Args): string
    }
  : never

/** A part of a line: what is listed, and the names; nothing where there are none. */
export const listed = (what: string, names: readonly string[]): string[] =>
  names.length > 0 ? [`${what} ${names.join(' ')}`] : []
