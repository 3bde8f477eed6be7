import type { EffectClass } from '../language/definition.ts'

/**
 * The declaration of an effect, which the API can read too: the effect classes that may use it, and descriptions of its
 * calls. `Api` is the object of async methods in a node's context; `activities/effects/` implements it.
 */
export interface Port<Api extends object> {
  /** The effect classes of the nodes that may use it. */
  classes: readonly EffectClass[]
  /** Whether /v1 scopes protect its data: a node type that uses it must then declare its scopes. */
  scoped: boolean
  /** The environment variables of the service without which its calls fail. */
  variables?: readonly string[]
  /** Descriptions of calls by method, for logs of node tests and for previews. */
  words: { [Method in keyof Api]: Words<Api[Method]> }
}

/** One line each, with names of fields, headers and parameters, and ids; never values, which may be secret. */
export type Words<Method> = Method extends (...args: infer Args) => Promise<infer Result>
  ? {
      /** What the call is about to do. */
      call(...args: Args): string
      /** What it did. */
      result(result: Result, ...args: Args): string
    }
  : never

/** A part of the line that describes an effect, `<what> <names>`; empty if there are no names. */
export const listed = (what: string, names: readonly string[]): string[] =>
  names.length > 0 ? [`${what} ${names.join(' ')}`] : []
