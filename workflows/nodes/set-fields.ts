import { z } from 'zod'
import { UNKNOWN } from '../language/value-types.ts'
import { isObject } from '../shared/is-object.ts'
import { defineNode } from './define.ts'

export const setFields = defineNode({
  type: 'set_fields',
  engine: 1,
  category: 'data',
  title: 'Set fields',
  alsoCalled: [
    'set',
    'set_variable',
    'set_variables',
    'assign',
    'variables',
    'edit_fields',
    'transform',
    'map',
  ],
  description: 'Sets named values for later nodes. The output is `fields` with its placeholders rendered.',
  effect: 'pure',
  config: z.strictObject({
    fields: z.record(z.string(), z.unknown()).describe('The fields of the output.'),
  }),
  output: z.record(z.string(), z.unknown()),
  handles: () => [{ name: 'success', description: 'The fields are set.' }],
  outputType: ({ fields }, { typeOf }) => (isObject(fields) ? typeOf(fields) : UNKNOWN),
  copies: (_, path) => [['fields', ...path]],
  outputOnly: true,
  example: {
    config: { fields: { full_name: '{{ trigger.record.first_name }} {{ trigger.record.last_name }}' } },
    inputs: { trigger: { record: { first_name: 'Ada', last_name: 'Lovelace' } } },
    output: { full_name: 'Ada Lovelace' },
  },
  run: ({ fields }) => ({ output: fields }),
})
