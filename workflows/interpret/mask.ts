/** Names whose values are never stored: a node's rendered config is stored, and shown with its run. */
const SECRET_NAME = /secret|signature|token|authorization|cookie|password|credential|api-?_?key|^key$/i
const MASK = '[masked]'

/** A rendered config as it is stored: secrets in headers, query parameters, the URL and the body are masked by name. */
export function masked(config: unknown): unknown {
  if (!isObject(config)) return config
  const parts = ['headers', 'query', 'body'].filter(
    (part) => isObject(config[part]) || Array.isArray(config[part]),
  )
  const url = typeof config.url === 'string' ? { url: maskedUrl(config.url) } : {}
  if (parts.length === 0 && !('url' in url)) return config
  return { ...config, ...url, ...Object.fromEntries(parts.map((part) => [part, maskedNames(config[part])])) }
}

function maskedNames(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(maskedNames)
  if (!isObject(value)) return value
  return Object.fromEntries(
    Object.entries(value).map(([name, member]) => [
      name,
      SECRET_NAME.test(name) ? MASK : maskedNames(member),
    ]),
  )
}

/** On the text, because a value that is not a valid URL is stored too. */
function maskedUrl(url: string): string {
  return url
    .replace(/^([a-z][a-z\d+.-]*:\/\/[^/?#:@]*:)[^/?#@]*@/i, `$1${MASK}@`)
    .replace(/([?&])([^=&#]*)=([^&#]*)/g, (whole, sign: string, name: string) =>
      SECRET_NAME.test(decoded(name)) ? `${sign}${name}=${MASK}` : whole,
    )
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
