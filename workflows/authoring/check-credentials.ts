import type { NodeSpec } from '../language/definition.ts'
import { type Problem, pointer } from '../language/problems.ts'
import { textsIn } from '../language/texts.ts'
import { findNodeType } from '../nodes/index.ts'
import { credentialIn } from '../shared/credentials.ts'

/**
 * Warns about literals in a node's config that look like credentials. The name of a header, parameter or member counts
 * only in nodes that send it to other services: a record may have a field `key`.
 */
export function checkCredentials({ id, type, config }: NodeSpec, nodePath: string): Problem[] {
  const found = findNodeType(type)
  const sends = found?.effects.includes('http') ?? false
  const external = found?.reachesOutside(config) ?? false
  return textsIn(config).flatMap(({ path, text }): Problem[] => {
    const name = path.findLast((key) => typeof key === 'string')
    const what = credentialIn(text, sends && typeof name === 'string' ? name : undefined)
    if (what === undefined) return []
    return [
      {
        code: 'literal_credential',
        message: `${[id, ...path].join('.').slice(0, 200)} looks like a credential (${what.slice(0, 100)}): every key with workflows:read can read it`,
        hint: external
          ? 'keep it in /app/secrets/<name>, and write {{ secrets.<name> }}; then replace the credential, since it was written here'
          : 'keep it in /app/secrets/<name>, and write {{ secrets.<name> }} in the node that sends it: only nodes that call other services can read secrets',
        path: `${nodePath}/config${pointer(...path)}`,
        node_id: id,
      },
    ]
  })
}
