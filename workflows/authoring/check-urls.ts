import type { NodeSpec } from '../language/definition.ts'
import { type Problem, pointer } from '../language/problems.ts'
import type { ValueType } from '../language/value-types.ts'
import { findNodeType } from '../nodes/index.ts'
import { addFilter, type ForeignTexts, isAnyText, type Openness } from './foreign-texts.ts'
import type { Lowered } from './lower.ts'

/** Texts whose form does not keep the signs of URLs out: a `+` in a query is a blank. */
const OF_SIGNS = ['email', 'phone', 'uri']

const IN_URL: Openness = {
  safe: ['url_encode', 'cgi_escape', 'uri_escape', 'slugify', 'sha256', 'date', 'to_fixed'],
  isFree: (type: ValueType) => isAnyText(type) || OF_SIGNS.includes(String(type.format)),
}

/**
 * Warns about texts of others in a URL, behind its host: `&`, `?`, `/` or `..` in a name make another address of the
 * service, which the node calls with its credentials. A URL that is one placeholder, such as the link to the next page,
 * is meant as a whole.
 */
export function checkUrls({ definition, nodePath }: Lowered, foreign: ForeignTexts): Problem[] {
  return definition.nodes.flatMap((node): Problem[] => {
    const { url } = node.config
    if (typeof url !== 'string' || !url.includes('{{') || !callsUrl(node)) return []
    const open = foreign.firstIn(node, ['url'], behindHost(url), IN_URL)
    if (!open) return []
    return [
      {
        code: 'unencoded_url',
        message: `${open.written.slice(0, 100)} is put into the URL as it is: \`/\`, \`?\`, \`&\` or \`..\` in it lead to another address`,
        path: `${nodePath(node.id)}/config${pointer('url')}`,
        node_id: node.id,
        hint: () => addFilter(open.written, 'url_encode'),
      },
    ]
  })
}

const callsUrl = ({ type }: NodeSpec) => findNodeType(type)?.effects.includes('http') === true

/** What follows the host of a URL, or the placeholder that begins it. */
function behindHost(url: string): string {
  const [, host = url] = /^((?:https?:\/\/)?(?:\{\{[^{}]*\}\}|[^/?#{])*)/i.exec(url.trim()) ?? []
  return url.trim().slice(host.length)
}
