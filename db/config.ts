import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { z } from 'zod'
import { isCidr } from './egress.ts'
import { isKey } from './keys.ts'

/**
 * The settings that both processes share. `api/config.ts` and `worker/config.ts` extend this shape; together they
 * are the only places that read the environment.
 */
export const sharedSettings = z.object({
  NODE_ENV: z.enum(['development', 'production', 'test']).default('development'),
  DATA_DIR: z
    .string()
    .min(1)
    .default('.data')
    .transform((path) => resolve(path)),
  DATABASE_URL: z
    .string({ error: 'is missing: give a PostgreSQL URL, or use `npm start`, which starts an embedded one' })
    .regex(/^postgres(ql)?:\/\//, 'must look like postgres://user:password@host:5432/database'),
  DATABASE_POOL: z.coerce.number().int().min(2).max(200).default(10),
  SECRETS_KEY: z
    .string()
    .refine(
      (key) => Buffer.from(key, 'base64').length === 32,
      'must be 32 bytes in base64: `openssl rand -base64 32`',
    )
    .optional(),
  PUBLIC_URL: z.url().optional(),
  TEMPORAL_UI_URL: z.url().optional(),
  TEMPORAL_NAMESPACE: z.string().min(1).default('default'),
  ALLOW_INSECURE_WEBHOOKS: z.stringbool().default(false),
  EGRESS_ALLOW: z
    .string()
    .default('')
    .transform((list) => list.split(/[\s,]+/).filter(Boolean))
    .superRefine((ranges, ctx) => {
      for (const range of ranges)
        if (!isCidr(range)) ctx.addIssue(`${range} is not a CIDR range such as 10.1.0.0/16`)
    }),
  LOG_LEVEL: z.enum(['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent']).default('info'),
})

/** What the first start would otherwise make up. */
export const bootstrapSettings = z.object({
  BOOTSTRAP_EMAIL: z.email().optional(),
  BOOTSTRAP_PASSWORD: z.string().min(12, 'must have at least 12 characters').optional(),
  BOOTSTRAP_API_KEY: z
    .string()
    .refine(isKey, 'must be agx_, 40 letters or digits, and 6 of their checksum')
    .optional(),
})

/** A setting that cannot be used; its message names each variable and what is wrong with it. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError'
}

/** Parses `env` with `settings`; an empty variable counts as unset. Throws ConfigError with one line for each problem. */
export function readSettings<S extends z.ZodObject>(settings: S, env: NodeJS.ProcessEnv): z.output<S> {
  const set = Object.fromEntries(Object.entries(env).filter(([, value]) => value !== ''))
  const parsed = settings.safeParse(set)
  if (!parsed.success)
    throw new ConfigError(
      parsed.error.issues.map((issue) => `${issue.path.join('.')} ${issue.message}`).join('\n'),
    )
  const values = parsed.data as z.output<typeof sharedSettings>
  if (values.NODE_ENV === 'production') {
    if (!values.SECRETS_KEY) throw new ConfigError('SECRETS_KEY is missing: in production it has no default')
    if (values.ALLOW_INSECURE_WEBHOOKS)
      throw new ConfigError(
        'ALLOW_INSECURE_WEBHOOKS must not be set in production: webhooks need https there',
      )
  }
  return parsed.data
}

/**
 * The key that seals secrets at rest: `SECRETS_KEY`, or outside production one that is made on first use and kept
 * in the data folder. 32 bytes.
 */
export function secretsKey(settings: { SECRETS_KEY?: string | undefined; DATA_DIR: string }): Buffer {
  if (settings.SECRETS_KEY) return Buffer.from(settings.SECRETS_KEY, 'base64')
  const file = join(settings.DATA_DIR, 'secrets.key')
  mkdirSync(settings.DATA_DIR, { recursive: true })
  try {
    const made = crypto.getRandomValues(Buffer.alloc(32)).toString('base64')
    writeFileSync(file, made, { mode: 0o600, flag: 'wx' })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  }
  return Buffer.from(readFileSync(file, 'utf8'), 'base64')
}
