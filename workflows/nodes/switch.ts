import { z } from 'zod'
import { equal } from './compare.ts'
import { defineNode } from './define.ts'
import { handleName } from './fields.ts'

const RESERVED = ['default', 'error']

export const switchNode = defineNode({
  type: 'switch',
  category: 'flow',
  title: 'Switch',
  description:
    'Leaves by the first case that the value equals, by `default` where there is none. Each case is a handle with the value, or the list of values, that leads to it.',
  effect: 'pure',
  config: z.strictObject({
    value: z.unknown().refine((value) => value !== undefined, 'is required'),
    cases: z
      .record(
        handleName.refine((name) => !RESERVED.includes(name), 'is the name of a handle of every switch'),
        z.union([
          z.string(),
          z.number(),
          z.boolean(),
          z.null(),
          z.array(z.union([z.string(), z.number(), z.boolean(), z.null()])).min(1),
        ]),
      )
      .refine((cases) => Object.keys(cases).length > 0, 'needs at least one case')
      .describe('Handle name to the value or values that lead to it.'),
  }),
  output: z.strictObject({ value: z.unknown(), case: z.string() }),
  handles: ({ cases }) => [
    ...(typeof cases === 'object' && cases !== null && !Array.isArray(cases) ? Object.keys(cases) : [])
      .filter((name) => !RESERVED.includes(name))
      .map((name) => ({ name, description: `The value equals the case ${name}.` })),
    { name: 'default', description: 'No case fits.' },
  ],
  example: {
    config: {
      value: '{{ trigger.record.lifecycle_stage }}',
      cases: { sales: ['sql', 'opportunity'], marketing: 'mql' },
    },
    inputs: { trigger: { record: { lifecycle_stage: 'mql' } } },
    output: { value: 'mql', case: 'marketing' },
    handle: 'marketing',
  },
  run({ value, cases }) {
    const found = Object.entries(cases).find(([, wanted]) =>
      (Array.isArray(wanted) ? wanted : [wanted]).some((item) => equal(value, item)),
    )
    const handle = found?.[0] ?? 'default'
    return { output: { value, case: handle }, handle }
  },
})
