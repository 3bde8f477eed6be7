import { hasPlaceholder } from '../language/expressions/template.ts'
import { type Problem, pointer } from '../language/problems.ts'
import { textsIn } from '../language/texts.ts'
import { kindsOf } from '../language/value-types.ts'
import type { Catalogue } from '../nodes/catalogue.ts'
import { findNodeType } from '../nodes/index.ts'
import type { Lowered } from './lower.ts'
import type { Types } from './types.ts'

/** Checks the types of the placeholders that a node gives to another workflow as its inputs. */
export function checkCalls(
  { definition, nodePath }: Lowered,
  types: Types,
  { workflows = {} }: Catalogue,
): Problem[] {
  return definition.nodes.flatMap((node) =>
    (findNodeType(node.type)?.workflows(node.config) ?? []).flatMap(({ workflow, inputs }): Problem[] => {
      const known = Object.hasOwn(workflows, workflow) ? workflows[workflow]!.inputs : {}
      return Object.entries(inputs?.values ?? {}).flatMap(([name, value]): Problem[] => {
        const wanted = Object.hasOwn(known, name) ? known[name]!.type : 'any'
        if (wanted === 'any' || !textsIn(value).some(({ text }) => hasPlaceholder(text))) return []
        const kinds = kindsOf(types.ofValue(value, { reader: node })) ?? []
        if (kinds.length === 0 || kinds.includes(wanted)) return []
        return [
          {
            code: 'workflow_inputs',
            message: `the input ${name} of the workflow ${JSON.stringify(workflow)} must be of type ${wanted}: this is of type ${kinds.join(' or ')}`,
            path: `${nodePath(node.id)}/config${pointer(...inputs!.path, name)}`,
            node_id: node.id,
          },
        ]
      })
    }),
  )
}
