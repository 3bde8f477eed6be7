import { z } from 'zod'
import { members, oneOf } from '../language/value-types.ts'
import { isObject } from '../shared/is-object.ts'
import { equal } from './compare.ts'
import { type Authored, defineNode } from './define.ts'
import { handleName } from './fields.ts'

const RESERVED = ['default', 'error']

export const switchNode = defineNode({
  type: 'switch',
  engine: 1,
  category: 'flow',
  title: 'Switch',
  alsoCalled: ['case', 'router', 'route', 'choice', 'match', 'multi_branch'],
  compared: true,
  description:
    'Compares `value` with the cases in order and leaves by the first one that is equal, otherwise by `default`. The name of each case is a handle.',
  effect: 'pure',
  config: z.strictObject({
    value: z.unknown().refine((value) => value !== undefined, 'is required'),
    cases: z
      .record(
        handleName.refine((name) => !RESERVED.includes(name), 'is a reserved handle name: choose another'),
        z.union([
          z.string(),
          z.number(),
          z.boolean(),
          z.null(),
          z.array(z.union([z.string(), z.number(), z.boolean(), z.null()])).min(1),
        ]),
      )
      .refine((cases) => Object.keys(cases).length > 0, 'needs at least one case')
      .describe('Maps each handle name to the value, or list of values, that leads to it.'),
  }),
  output: z.strictObject({ value: z.unknown(), case: z.string() }),
  outputType: (config, { typeOf }) =>
    members({ value: typeOf(config.value), case: oneOf([...casesOf(config), 'default']) }),
  comparisons: ({ value, cases }) =>
    isObject(cases)
      ? [
          {
            of: { value },
            operator: 'eq',
            with: Object.entries(cases).flatMap(([name, wanted]) =>
              Array.isArray(wanted)
                ? wanted.map((one, index) => ({ value: one, path: ['cases', name, index] }))
                : [{ value: wanted, path: ['cases', name] }],
            ),
          },
        ]
      : [],
  cases: casesOf,
  handles: (config) => [
    ...casesOf(config).map((name) => ({ name, description: `The value equals the case ${name}.` })),
    { name: 'default', description: 'No case matches.' },
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
  run({ value, cases }, { organization: { timezone } }) {
    const found = Object.entries(cases).find(([, wanted]) =>
      (Array.isArray(wanted) ? wanted : [wanted]).some((item) => equal(value, item, timezone)),
    )
    const handle = found?.[0] ?? 'default'
    return { output: { value, case: handle }, handle }
  },
})

function casesOf({ cases }: Authored): string[] {
  return isObject(cases) ? Object.keys(cases).filter((name) => !RESERVED.includes(name)) : []
}
