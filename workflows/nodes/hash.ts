import { createHash } from 'node:crypto'
import { z } from 'zod'
import { TEXT } from '../shared/limits.ts'
import { canonical } from './compare.ts'
import { defineNode } from './define.ts'

const ALGORITHMS = ['sha256', 'sha512', 'sha1', 'md5'] as const
const ENCODINGS = ['hex', 'base64', 'base64url'] as const

export const hash = defineNode({
  type: 'hash',
  engine: 4,
  category: 'data',
  title: 'Hash',
  alsoCalled: ['crypto', 'digest', 'checksum', 'sha256', 'md5', 'fingerprint', 'hash_text'],
  description:
    'Computes a hash of a value. Use it for a key to find duplicates, or for an email in the form for advertising services. Equal values have equal hashes. A hash does not hide a value that can be guessed.',
  effect: 'pure',
  config: z.strictObject({
    value: z
      .union([
        z.string().max(TEXT.characters),
        z.number(),
        z.boolean(),
        z.record(z.string(), z.unknown()),
        z.array(z.unknown()),
      ])
      .describe(
        'A text is hashed as UTF-8, exactly as it is: `{{ inputs.email | strip | downcase }}`. A mapping or a list is hashed as JSON without spaces, with sorted keys.',
      ),
    algorithm: z
      .enum(ALGORITHMS)
      .default('sha256')
      .describe('`sha1` and `md5` are for old services only: they do not protect against forgery.'),
    encoding: z.enum(ENCODINGS).default('hex').describe('How the hash is written.'),
  }),
  output: z.strictObject({ hash: z.string(), algorithm: z.enum(ALGORITHMS) }),
  handles: () => [{ name: 'success', description: 'The hash is computed.' }],
  outputOnly: true,
  example: {
    config: { value: '{{ inputs.email | strip | downcase }}' },
    inputs: { inputs: { email: ' Ada@Example.com' } },
    output: {
      hash: 'b5fc85e55755f9e0d030a10ab4429b6b2944855f9a0d60077fe832becbc41d72',
      algorithm: 'sha256',
    },
  },
  run({ value, algorithm, encoding }) {
    const text = typeof value === 'object' ? canonical(value) : String(value)
    return { output: { hash: createHash(algorithm).update(text).digest(encoding), algorithm } }
  },
})
