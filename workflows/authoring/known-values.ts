import type { Definition } from '../language/definition.ts'
import { typeOfSamples, withOrigin } from '../language/sample-types.ts'
import type { Origin } from '../language/shapes.ts'
import { Texts } from '../language/texts.ts'
import { unionOf } from '../language/value-types.ts'
import type { CalledWorkflow, Catalogue } from '../nodes/catalogue.ts'
import { findNodeType } from '../nodes/index.ts'
import { bodiesOf } from './loops.ts'
import { Types } from './types.ts'

/**
 * What an organization has of the values that a definition does not tell: captured payloads of its incoming webhooks,
 * pinned outputs of its nodes, and the workflows that it calls.
 */
export interface KnownValues {
  payloads: readonly { webhook: string; payload: unknown }[]
  /** By the id of the node. */
  outputs: Readonly<Record<string, unknown>>
  /** By the name or id that the definition has. */
  workflows: Readonly<Record<string, Definition>>
}

/** The catalogue with the types of these values. */
export function withKnownValues(
  catalogue: Catalogue,
  { payloads, outputs, workflows }: KnownValues,
): Catalogue {
  return {
    ...catalogue,
    ...(payloads.length > 0 && {
      payload: typeOfSamples(
        payloads.map(({ payload }) => payload),
        ofWebhook(payloads[0]!.webhook),
      ),
    }),
    outputs: Object.fromEntries(
      Object.entries(outputs).map(([id, output]) => [id, typeOfSamples([output], ofNode(id))]),
    ),
    workflows: Object.fromEntries(
      Object.entries(workflows).map(([name, definition]) => [name, called(name, definition, catalogue)]),
    ),
  }
}

const ofWebhook = (name: string): Origin => ({
  code: 'unlike_sample',
  what: `the sample of the webhook ${JSON.stringify(name)}`,
  others: 'other requests',
  otherwise:
    'add a default, or capture another sample: POST /v1/webhooks/incoming/{webhook_id}/capture, with the scope webhooks:write',
})

const ofNode = (id: string): Origin => ({
  code: 'unlike_sample',
  what: `the pinned sample of ${id}`,
  others: 'other outputs',
  otherwise: `add a default, or pin another sample: PUT /v1/workflows/{workflow_id}/samples/${id}, with the scope workflows:author`,
})

const ofWorkflow = (name: string): Origin => ({
  code: 'workflow_outputs',
  what: `the workflow ${JSON.stringify(name)}`,
  otherwise: `add it to the \`outputs\` of the workflow ${JSON.stringify(name)}`,
})

/** The inputs of a workflow, and the types of its outputs; those that it has from another one are unknown. */
function called(name: string, definition: Definition, catalogue: Catalogue): CalledWorkflow {
  const types = new Types({ definition, texts: new Texts() }, bodiesOf(definition), catalogue)
  const ends = definition.nodes.flatMap((node) => {
    const outputs = findNodeType(node.type)?.endsWith?.(node.config)
    return outputs === undefined ? [] : [types.ofValue(outputs, { reader: node })]
  })
  const outputs = unionOf([types.ofValue(definition.outputs, {}), ...ends])
  return { inputs: definition.inputs, outputs: withOrigin(outputs, ofWorkflow(name)) }
}
