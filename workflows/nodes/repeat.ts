import { z } from 'zod'
import { textProblem } from '../language/check-events.ts'
import { parseDuration } from '../language/duration.ts'
import { listOf, NULL, typeOfSchema, unionOf } from '../language/value-types.ts'
import { LOOP } from '../shared/limits.ts'
import { defineNode } from './define.ts'
import { duration } from './fields.ts'

const output = z.strictObject({
  turns: z.int().describe('How often the body ran.'),
  ended_by: z.enum(['until', 'limit']),
  last: z.unknown().describe('The result of the last turn.'),
  results: z
    .array(z.unknown())
    .nullable()
    .describe(
      'The results of all turns, in order. Null if they are too large and no placeholder reads them.',
    ),
})

/** The turns of a `repeat` unless it names a number. */
const DEFAULT_TURNS = 100

export const repeat = defineNode({
  type: 'repeat',
  engine: 9,
  category: 'flow',
  title: 'Repeat until',
  alsoCalled: [
    'while',
    'until',
    'do_while',
    'do_until',
    'repeat_until',
    'loop_until',
    'while_loop',
    'poll',
    'paginate',
  ],
  description:
    'Runs its body until a condition holds. The body is the nodes that `turn` leads to; then the node leaves by `done`. In the body, `previous` is the result of the turn before (in the first one: `initial`), `index` the number of the turn from 0; `nodes.<repeat>.output.previous` and `.index` are those of a repeat around it. The body ends where no node follows, and is entered only through `turn`. A turn that fails fails the node.',
  effect: 'pure',
  body: 'turn',
  repeats: true,
  perItem: ['until', 'output'],
  config: z.strictObject({
    until: z
      .boolean({ error: 'must be true or false' })
      .optional()
      .describe(
        'Required. The condition, rendered after each turn with placeholders as in the body: `"{{ nodes.check.output.body.status == \'done\' }}"`. The output of a node that did not run is null.',
      ),
    max_turns: z.int().min(1).max(LOOP.turns).default(DEFAULT_TURNS).describe('The most turns.'),
    on_limit: z
      .enum(['fail', 'stop'])
      .default('fail')
      .describe(
        'If `until` does not hold after `max_turns`. `fail`: the node fails with `turn_limit`. `stop`: it leaves by `done`, with `ended_by: limit`.',
      ),
    pause: duration('1ms', '365d')
      .optional()
      .describe('How long to wait between turns. The wait is durable.'),
    initial: z.unknown().optional().describe('`previous` in the first turn. Default: null.'),
    output: z
      .unknown()
      .optional()
      .describe(
        'The result of a turn, with placeholders as in the body, rendered when its body is done; the output of a node that did not run is null. Default: the output of the node that completed last.',
      ),
  }),
  output,
  check: ({ until }) =>
    until === undefined
      ? [
          {
            code: 'missing_key',
            message: 'until is missing: without it, nothing ends the turns but `max_turns`',
            path: [],
            hint: 'add the condition: `until: "{{ nodes.<a node of the body>.output.<field> == <value> }}"`; to run a number of turns, `until: "{{ index == 9 }}"`',
          },
        ]
      : [textProblem(String(until)) ?? []].flat().map((problem) => ({ ...problem, path: ['until'] })),
  outputType(_, { result }) {
    const { properties, ...type } = typeOfSchema(output)
    const ofTurn = result()
    const results = unionOf([listOf(ofTurn), NULL])
    return { ...type, properties: { ...properties, last: ofTurn, results } }
  },
  handles: () => [
    { name: 'turn', description: 'Leads to the body, which runs until the condition holds.' },
    { name: 'done', description: 'The condition holds.' },
  ],
  example: {
    config: { until: '{{ index == 2 }}', max_turns: 10 },
    output: { turns: 0, ended_by: 'until', last: null, results: [] },
    handle: 'turn',
  },
  run({ max_turns, on_limit, pause, initial = null }) {
    const pause_ms = pause === undefined ? 0 : parseDuration(pause)!
    return {
      output: { turns: 0, ended_by: 'until' as const, last: null, results: [] },
      handle: 'turn',
      turns: { initial, max_turns, on_limit, pause_ms },
    }
  },
})
