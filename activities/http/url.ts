import { NodeError } from '../../workflows/language/node-error.ts'

/** Parses a URL that may be called: http or https, without credentials. Throws NodeError `invalid_url`. */
export function checkUrl(text: string, base?: string): URL {
  let url: URL
  try {
    url = new URL(text, base)
  } catch {
    throw new NodeError('invalid_url', 'the URL cannot be parsed')
  }
  if (url.protocol !== 'http:' && url.protocol !== 'https:')
    throw new NodeError('invalid_url', 'only http and https URLs can be called')
  if (url.username || url.password)
    throw new NodeError('invalid_url', 'a URL must not contain credentials: send them in a header')
  return url
}
