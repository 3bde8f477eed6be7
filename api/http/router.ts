import KoaRouter, { type Layer } from '@koa/router'

export type Match<T> =
  | { found: true; value: T; params: Record<string, string> }
  /** The path exists, but not with this method. */
  | { found: false; allowed: string[] }
  /** The value of a segment is not one that its parameter accepts. */
  | { found: false; unknown: { name: string; accepted: Accepted[string] } }

/** The values of the path parameters that are enumerations. */
export type Accepted = Record<string, readonly string[]>

interface Entry<T> {
  method: string
  path: string
  value: T
  accepted: Accepted
}

/** Finds the entry of a method and path. Literal segments precede parameters, in any order of `add`. */
export class Router<T> {
  private readonly entries = new Map<string, Entry<T>>()
  private router: KoaRouter | undefined

  /** `path` in OpenAPI style: `/workflows/{workflow_id}`. Throws for a duplicate route. */
  add(method: string, path: string, value: T, accepted: Accepted = NO_ENUMERATIONS): void {
    const name = `${method} ${path.replace(/\{\w+\}/g, '{}')}`
    if (this.entries.has(name)) throw new Error(`duplicate route ${method} ${path}`)
    this.entries.set(name, { method, path, value, accepted })
    this.router = undefined
  }

  /** @returns undefined for an unknown path. GET routes match HEAD too. */
  match(method: string, path: string): Match<T> | undefined {
    this.router ??= build(this.entries)
    const layers = this.router.match(path, method).path
    if (layers.length === 0) return undefined
    const possible = layers.filter((layer) => !this.unknownSegment(layer, path))
    if (possible.length === 0) return { found: false, unknown: this.unknownSegment(layers[0]!, path)! }
    // The first layer is the most literal one; its path can have further methods.
    const same = possible.filter((layer) => layer.path === possible[0]!.path)
    const layer = same.find(({ methods }) => methods.includes(method))
    if (!layer) return { found: false, allowed: same.flatMap(({ methods }) => methods.slice(-1)) }
    const captures = layer.captures(path)
    if (!captures.every(isText)) return undefined
    const params = layer.params(path, captures)
    return { found: true, value: this.entries.get(layer.name!)!.value, params }
  }

  /** The first segment whose value its parameter does not accept. */
  private unknownSegment(layer: Layer, path: string) {
    const { accepted } = this.entries.get(layer.name!)!
    if (accepted === NO_ENUMERATIONS) return undefined
    const captures = layer.captures(path)
    const i = layer.paramNames.findIndex(({ name }, i) => accepted[name]?.includes(captures[i]!) === false)
    if (i < 0) return undefined
    const { name } = layer.paramNames[i]!
    return { name: String(name), accepted: accepted[name]! }
  }
}

const NO_ENUMERATIONS: Accepted = {}

/** @koa/router uses the first match, so literal paths are registered first. */
function build<T>(entries: Map<string, Entry<T>>): KoaRouter {
  const router = new KoaRouter({ strict: true, sensitive: true })
  const order = ([, { path }]: [string, Entry<T>]) => path.replace(/\{\w+\}/g, '\uffff')
  for (const [name, { method, path }] of [...entries].sort((a, b) => (order(a) < order(b) ? -1 : 1)))
    router.register(path.replace(/\{(\w+)\}/g, ':$1'), [method], () => {}, { name })
  return router
}

/** Whether a segment is valid percent-encoding without control characters. */
function isText(segment: string): boolean {
  try {
    return !/\p{Cc}/u.test(decodeURIComponent(segment))
  } catch {
    return false
  }
}
