import { z } from 'zod'
import { ON_ITEM_ERROR } from '../language/definition.ts'
import { NodeError } from '../language/node-error.ts'
import { listOf, typeOfSchema } from '../language/value-types.ts'
import { LOOP } from '../shared/limits.ts'
import { defineNode } from './define.ts'

const outcome = z.strictObject({
  count: z.int(),
  succeeded: z.int(),
  failed: z.int(),
  results: z
    .array(z.unknown())
    .optional()
    .describe(
      'The outputs of the items that completed, in the order of the list. Placeholders read it; it is made from `items`, and not stored.',
    ),
  items: z
    .array(
      z.strictObject({
        index: z.int(),
        status: z.enum(['completed', 'failed', 'cancelled']),
        output: z.unknown(),
        item: z
          .unknown()
          .optional()
          .describe(
            'The item, if it did not complete. Only the undo of a loop that ended early sees cancelled ones.',
          ),
        error: z.object({ code: z.string(), message: z.string() }).loose().optional(),
      }),
    )
    .nullable()
    .describe('In the order of the list. Null if they are too large and no placeholder reads them.'),
})

export const forEach = defineNode({
  type: 'for_each',
  engine: 3,
  category: 'flow',
  title: 'For each',
  alsoCalled: ['loop', 'foreach', 'each', 'iterate', 'iterator', 'loop_items', 'split_in_batches'],
  description:
    'Runs its body, the nodes that `item` leads to, once for each item of a list, then leaves by `done`. In the body, `item` and `index` are the current ones, `nodes.<loop>.output.item` those of a loop around it. The body ends where no node follows, and is entered only through `item`. A node in it reads nodes of the same item; after `done`, only `nodes.<loop>.output.results`, the outputs of the items that completed, in order, and `.items`: `{index, status, output}` of each, with `item` and `error` if it failed.',
  effect: 'pure',
  body: 'item',
  perItem: ['output'],
  config: z.strictObject({
    items: z
      .array(z.unknown(), { error: 'must be a list' })
      .describe(
        `The list, of at most ${LOOP.items} items; usually a placeholder: \`{{ nodes.find.output.data }}\`.`,
      ),
    concurrency: z
      .int()
      .min(1)
      .max(LOOP.concurrency)
      .default(1)
      .describe('How many items may be in progress at the same time. They start in the order of the list.'),
    on_item_error: z
      .enum(ON_ITEM_ERROR)
      .default('stop')
      .describe(
        'If a node of the body fails and nothing handles it, its item fails. `stop`: the loop fails too, and items in progress are cancelled. `continue`: the loop goes on with the other items.',
      ),
    output: z
      .unknown()
      .optional()
      .describe(
        'The result of an item, with placeholders as in the body, rendered when the item is done; the output of a node that did not run is null. Default: the output of the node that completed last.',
      ),
  }),
  output: outcome,
  outputType(_, { result }) {
    const { properties, ...output } = typeOfSchema(outcome)
    const type = result()
    const [list] = properties!.items!.anyOf!
    const { items: item } = list!
    const items = listOf({ ...item, properties: { ...item!.properties, output: type } })
    return { ...output, properties: { ...properties, results: listOf(type), items } }
  },
  handles: () => [
    { name: 'item', description: 'Leads to the body, which runs once for each item.' },
    { name: 'done', description: 'All items are done.' },
  ],
  example: {
    config: { items: '{{ inputs.emails }}', concurrency: 5, output: '{{ item }}' },
    inputs: { inputs: { emails: ['ada@example.com', 'bob@example.com'] } },
    output: { count: 2, succeeded: 0, failed: 0, items: [] },
    handle: 'item',
  },
  run({ items, concurrency, on_item_error }) {
    if (items.length > LOOP.items)
      throw new NodeError(
        'too_many_items',
        `There are ${items.length} items: a loop takes ${LOOP.items} at most.`,
      )
    const output = { count: items.length, succeeded: 0, failed: 0, items: [] }
    const handle = items.length > 0 ? 'item' : 'done'
    return { output, handle, loop: { items, concurrency, on_item_error } }
  },
})
