import KoaRouter from '@koa/router'

export type Match<T> =
  | { found: true; value: T; params: Record<string, string> }
  /** A path that exists, asked with a method that it does not have. */
  | { found: false; allowed: string[] }

interface Entry<T> {
  method: string
  path: string
  value: T
}

/** Finds what answers a method and path: literal segments win over parameters, whatever order they were added in. */
export class Router<T> {
  private readonly entries = new Map<string, Entry<T>>()
  private router: KoaRouter | undefined

  /** `path` in OpenAPI style: `/workflows/{workflow_id}`. Throws if two routes are the same. */
  add(method: string, path: string, value: T): void {
    const name = `${method} ${path.replace(/\{\w+\}/g, '{}')}`
    if (this.entries.has(name)) throw new Error(`${method} ${path} is listed twice`)
    this.entries.set(name, { method, path, value })
    this.router = undefined
  }

  /** @returns undefined for a path that does not exist. HEAD is answered as GET. */
  match(method: string, path: string): Match<T> | undefined {
    this.router ??= build(this.entries)
    const layers = this.router.match(path, method).path
    // The first is the most literal; what answers other methods on the same path is beside it.
    const same = layers.filter((layer) => layer.path === layers[0]!.path)
    if (same.length === 0) return undefined
    const layer = same.find(({ methods }) => methods.includes(method))
    if (!layer) return { found: false, allowed: same.flatMap(({ methods }) => methods.slice(-1)) }
    const captures = layer.captures(path)
    if (!captures.every(isText)) return undefined
    const params = layer.params(path, captures)
    return { found: true, value: this.entries.get(layer.name!)!.value, params }
  }
}

/** @koa/router takes the first route that fits: literal ones go first. */
function build<T>(entries: Map<string, Entry<T>>): KoaRouter {
  const router = new KoaRouter({ strict: true, sensitive: true })
  const order = ([, { path }]: [string, Entry<T>]) => path.replace(/\{\w+\}/g, '\uffff')
  for (const [name, { method, path }] of [...entries].sort((a, b) => (order(a) < order(b) ? -1 : 1)))
    router.register(path.replace(/\{(\w+)\}/g, ':$1'), [method], () => {}, { name })
  return router
}

/** Whether a segment is sound percent-encoding, without control characters, which name nothing. */
function isText(segment: string): boolean {
  try {
    return !/\p{Cc}/u.test(decodeURIComponent(segment))
  } catch {
    return false
  }
}
