import { isSecretName, MASK, maskSecrets } from '../secret-names.ts'

/** A rendered config as it is stored: secrets in headers, query parameters, the URL and the body are masked by name. */
export function masked(config: unknown): unknown {
  if (!isObject(config)) return config
  const parts = ['headers', 'query', 'body'].filter(
    (part) => isObject(config[part]) || Array.isArray(config[part]),
  )
  const url = typeof config.url === 'string' ? { url: maskedUrl(config.url) } : {}
  if (parts.length === 0 && !('url' in url)) return config
  return { ...config, ...url, ...Object.fromEntries(parts.map((part) => [part, maskSecrets(config[part])])) }
}

/** Works on the text, because an invalid URL is stored too. */
function maskedUrl(url: string): string {
  return url
    .replace(/^([a-z][a-z\d+.-]*:\/\/[^/?#:@]*:)[^/?#@]*@/i, `$1${MASK}@`)
    .replace(/([?&])([^=&#]*)=([^&#]*)/g, (whole, sign: string, name: string) =>
      isSecretName(decoded(name)) ? `${sign}${name}=${MASK}` : whole,
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
