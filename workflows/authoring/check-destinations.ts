import type { NodeSpec } from '../language/definition.ts'
import { references } from '../language/expressions/references.ts'
import { SECRETS_ROOT } from '../language/expressions/secrets.ts'
import type { Problem } from '../language/problems.ts'
import { textsIn } from '../language/texts.ts'
import { findNodeType } from '../nodes/index.ts'

/** The roots that the organization sets itself. */
const OWN_ROOTS = ['env', 'org', 'run', SECRETS_ROOT]

/**
 * Warns about a secret that is sent to a host from outside the organization, such as from the answer of a service: the
 * author of that text would choose who gets the secret.
 */
export function checkDestination({ id, type, config }: NodeSpec, nodePath: string): Problem[] {
  const { url } = config
  if (typeof url !== 'string' || !findNodeType(type)?.effects.includes('http')) return []
  const root = rootOfHost(url)
  if (root === undefined || !textsIn(config).some(({ text }) => hasSecret(text))) return []
  return [
    {
      code: 'secret_to_any_host',
      message: `${root} decides to which host ${id} sends its secret`,
      hint: 'write the host, up to its slash, in the url: `https://api.example.com/{{ … }}`; `paginate` follows links to the host of its url only',
      path: `${nodePath}/config/url`,
      node_id: id,
    },
  ]
}

/** The root of a placeholder that can change the host of a URL; undefined if there is none. */
function rootOfHost(url: string): string | undefined {
  const placeholders: string[] = []
  const marked = url.replace(/\{\{.*?\}\}/gs, (text) => {
    placeholders.push(text)
    return '\u0000'
  })
  const host = /^(?:https?:\/\/)?[^/?#]*/i.exec(marked)![0]
  return placeholders
    .slice(0, host.split('\u0000').length - 1)
    .flatMap((text) => referencesIn(text).map(({ path: [first] }) => String(first)))
    .find((first) => !OWN_ROOTS.includes(first))
}

const hasSecret = (text: string) =>
  text.includes(SECRETS_ROOT) && referencesIn(text).some(({ path: [first] }) => first === SECRETS_ROOT)

/** None of a text with a syntax error, which is reported as such. */
function referencesIn(text: string) {
  try {
    return references(text)
  } catch {
    return []
  }
}
