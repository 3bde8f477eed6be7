import { z } from 'zod'
import { CONDITION_OPERATORS, operandsOf } from '../shared/operators.ts'
import { compare } from './compare.ts'
import { comparedValues } from './compared-values.ts'
import { defineNode } from './define.ts'

const test = z
  .strictObject({
    left: z.unknown().describe('The value to test; usually a placeholder: `{{ nodes.find.output.email }}`.'),
    operator: z.enum(CONDITION_OPERATORS),
    right: z.unknown().optional().describe('The value to compare with; a list for `in` and `not_in`.'),
  })
  .refine((value) => value.left !== undefined, { path: ['left'], message: 'is required' })
  .refine((value) => operandsOf(value.operator) === 'nothing' || value.right !== undefined, {
    path: ['right'],
    message: 'is required for this operator',
  })

export const condition = defineNode({
  type: 'condition',
  engine: 1,
  category: 'flow',
  title: 'Condition',
  alsoCalled: ['if', 'if_else', 'branch', 'filter', 'decision', 'check', 'gateway'],
  compared: true,
  description:
    'Leaves by `true` if all (or any, see `match`) of the conditions hold, otherwise by `false`. Text comparison ignores case; numeric text compares as a number.',
  effect: 'pure',
  config: z.strictObject({
    match: z.enum(['all', 'any']).default('all'),
    conditions: z.array(test).min(1).max(50),
  }),
  output: z.strictObject({ result: z.boolean() }),
  comparisons: ({ conditions }) => comparedValues(conditions, ({ left }) => ({ value: left })),
  handles: () => [
    { name: 'true', description: 'The conditions hold.' },
    { name: 'false', description: 'The conditions do not hold.' },
  ],
  example: {
    config: { conditions: [{ left: '{{ trigger.record.lead_status }}', operator: 'eq', right: 'new' }] },
    inputs: { trigger: { record: { lead_status: 'new' } } },
    output: { result: true },
    handle: 'true',
  },
  run({ match, conditions }, { organization: { timezone } }) {
    const holds = ({ left, operator, right }: (typeof conditions)[number]) =>
      compare(left, operator, right, timezone)
    const result = match === 'all' ? conditions.every(holds) : conditions.some(holds)
    return { output: { result }, handle: String(result) }
  },
})

/** A node that goes on only if a value has another one, for hints. */
export const decision = (value: string): string =>
  `{type: condition, config: {conditions: [{left: "{{ ${value} }}", operator: eq, right: …}]}, next: {"true": …, "false": end}}`
