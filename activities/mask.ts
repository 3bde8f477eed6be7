/** Names whose values are kept nowhere: what a node was called with is stored, and shown with its run. */
const SECRET_NAME = /secret|signature|token|authorization|cookie|password|credential|api-?_?key|^key$/i

/** A rendered config as it is stored: secret headers and query parameters are masked. */
export function masked(config: unknown): unknown {
  if (!isObject(config)) return config
  const parts = ['headers', 'query'].filter((part) => isObject(config[part]))
  if (parts.length === 0) return config
  return {
    ...config,
    ...Object.fromEntries(parts.map((part) => [part, maskedNames(config[part] as object)])),
  }
}

const maskedNames = (values: object) =>
  Object.fromEntries(
    Object.entries(values).map(([name, value]) => [name, SECRET_NAME.test(name) ? '[masked]' : value]),
  )

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
