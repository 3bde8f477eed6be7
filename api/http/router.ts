/** A tree of path segments: literal ones win over parameters, whatever order they were added in. */
interface Node<T> {
  literals: Map<string, Node<T>>
  parameter: Node<T> | undefined
  methods: Map<string, { value: T; names: string[] }>
}

export type Match<T> =
  | { found: true; value: T; params: Record<string, string> }
  /** A path that exists, asked with a method that it does not have. */
  | { found: false; allowed: string[] }

/** Finds what answers a method and path. Built once at start; throws then if two routes are the same. */
export class Router<T> {
  private readonly root: Node<T> = newNode()

  /** `path` in OpenAPI style: `/workflows/{workflow_id}`. */
  add(method: string, path: string, value: T): void {
    const names: string[] = []
    let node = this.root
    for (const segment of split(path)) {
      const name = /^\{(\w+)\}$/.exec(segment)?.[1]
      if (name) {
        names.push(name)
        node.parameter ??= newNode()
        node = node.parameter
      } else {
        const next: Node<T> = node.literals.get(segment) ?? newNode()
        node.literals.set(segment, next)
        node = next
      }
    }
    if (node.methods.has(method)) throw new Error(`${method} ${path} is listed twice`)
    node.methods.set(method, { value, names })
  }

  /** @returns undefined for a path that does not exist. HEAD is answered as GET. */
  match(method: string, path: string): Match<T> | undefined {
    const segments = split(path)
    const values: string[] = []
    const node = find(this.root, segments, 0, values)
    if (!node) return undefined
    const route = node.methods.get(method === 'HEAD' ? 'GET' : method)
    if (!route) return { found: false, allowed: [...node.methods.keys()] }
    const params: Record<string, string> = {}
    for (let i = 0; i < values.length; i++) {
      const value = decode(values[i]!)
      if (value === undefined) return undefined
      params[route.names[i]!] = value
    }
    return { found: true, value: route.value, params }
  }
}

function find<T>(node: Node<T>, segments: string[], at: number, values: string[]): Node<T> | undefined {
  if (at === segments.length) return node.methods.size > 0 ? node : undefined
  const segment = segments[at]!
  const literal = node.literals.get(segment)
  const found = literal && find(literal, segments, at + 1, values)
  if (found || !node.parameter || segment === '') return found
  values.push(segment)
  const under = find(node.parameter, segments, at + 1, values)
  if (!under) values.pop()
  return under
}

/** Undefined for a broken percent-encoding and for control characters, which name nothing. */
function decode(segment: string): string | undefined {
  try {
    const text = decodeURIComponent(segment)
    return /\p{Cc}/u.test(text) ? undefined : text
  } catch {
    return undefined
  }
}

const split = (path: string) => path.split('/').slice(1)
const newNode = <T>(): Node<T> => ({ literals: new Map(), parameter: undefined, methods: new Map() })
