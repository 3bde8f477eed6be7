/** Paths into a JSON value, as its owner writes them: `user.ssn`, `items[0].id`, `$["a.b"].c`. */

/** The steps of a path; if the path is not supported, those steps that can be read. */
export const stepsOf = (path: string): string[] =>
  [...withoutRoot(path).matchAll(STEP)].map(([, quoted, single, bare]) => quoted ?? single ?? bare!)

/** A member after a dot or in brackets, there also in quotes; an index in brackets. */
const STEP = /\["([^"]*)"\]|\['([^']*)'\]|[.[]?([^.[\]]+)\]?/g

/** `$.a` and `$[0]` begin at the payload; `$` alone is a name. */
const withoutRoot = (path: string) => (/^\$[.[]/.test(path) ? path.slice(1) : path)

/** Whether a path names no single value: a wildcard, a slice, a filter, or brackets and dots that are left open. */
export const isUnsupportedPath = (path: string): boolean => !PATH.test(path)

const PATH =
  /^(\$(?=[.[])|[^.[\]*?$][^.[\]]*|(?=\[))(\.[^.[\]*]+|\["[^"]*"\]|\['[^']*'\]|\[[^.[\]*?:,"'-][^.[\]*?:,"']*\])*$/
