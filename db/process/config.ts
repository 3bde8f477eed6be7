import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { z } from 'zod'
import { NOT_A_MAILBOX, parseMailbox } from '../../workflows/shared/mailbox.ts'
import { requestMessage } from '../../workflows/shared/plain-words.ts'
import { isKey } from '../model/access/key-format.ts'
import { PLAN_CHANGE_RULES } from '../model/access/plan-change-rule.ts'
import { SIGN_UP_RULES } from '../model/access/sign-up-rule.ts'
import { ConfigError } from '../model/config-error.ts'
import type { DatabaseUrls } from '../postgres/roles.ts'
import { isCidr } from './egress.ts'
import type { SecretsKey } from './seal.ts'
import { temporalProfile } from './temporal-profile.ts'

const HIGHEST_PORT = 65_535

/** A port to listen on; 0 selects any free port. */
export const port = (lowest: 0 | 1 = 0) => whole(lowest, HIGHEST_PORT, 'must be a port number, 1 to 65535')

const flag = z.stringbool({ error: 'must be true or false' })
const httpUrl = z.url({ protocol: /^https?$/, error: 'must be a URL such as https://agx.example.com' })

const databaseUrl = z
  .string({ error: 'is missing: give a PostgreSQL URL, or use `npm start`, which starts an embedded one' })
  .regex(/^postgres(ql)?:\/\//, 'must look like postgres://user:password@host:5432/database')

/** The samplers of OpenTelemetry. */
const SAMPLERS = [
  'always_on',
  'always_off',
  'traceidratio',
  'parentbased_always_on',
  'parentbased_always_off',
  'parentbased_traceidratio',
] as const

const SECRETS_KEY_RULE = '32 bytes in base64: `openssl rand -base64 32`'
const isSecretsKey = (key: string) => Buffer.from(key, 'base64').length === 32

const isOrigin = (text: string) =>
  text === '*' || (/^https?:[^*]+$/.test(text) && URL.canParse(text) && new URL(text).origin === text)

/** The variables of migrations: the login that owns the tables. Default: the login of DATABASE_URL. */
export const migrationVariables = z.object({
  DATABASE_OWNER_URL: databaseUrl.optional(),
})

/**
 * The variables of both processes. `api/config.ts` and `worker/config.ts` add their own; `npm start` starts both
 * processes and reads all variables.
 */
export const sharedVariables = z.object({
  NODE_ENV: oneOf(['development', 'production', 'test']).default('development'),
  DATA_DIR: z
    .string()
    .min(1)
    .default('.data')
    .transform((path) => resolve(path)),
  DATABASE_URL: databaseUrl,
  /** The login of the system role. Without it, the login of DATABASE_URL switches to both roles. */
  DATABASE_SYSTEM_URL: databaseUrl.optional(),
  /** Lets production run with one login, which may be a superuser. */
  ALLOW_SINGLE_DATABASE_LOGIN: flag.default(false),
  DATABASE_POOL: whole(2, 200).default(10),
  SECRETS_KEY: z.string().refine(isSecretsKey, `must be ${SECRETS_KEY_RULE}`).optional(),
  /** Further keys, which only open: while SECRETS_KEY is rotated, they open what they sealed before. */
  SECRETS_KEYS_TO_OPEN: z
    .string()
    .default('')
    .transform((list) => list.split(/[\s,]+/).filter(Boolean))
    .refine(
      (keys) => keys.every(isSecretsKey),
      `must be a comma-separated list, each of ${SECRETS_KEY_RULE}`,
    ),
  PUBLIC_URL: httpUrl.optional(),
  TEMPORAL_UI_URL: httpUrl.optional(),
  TEMPORAL_NAMESPACE: z.string().min(1).default('default'),
  ALLOW_INSECURE_WEBHOOKS: flag.default(false),
  EGRESS_ALLOW: z
    .string()
    .default('')
    .transform((list) => list.split(/[\s,]+/).filter(Boolean))
    .superRefine((ranges, ctx) => {
      for (const range of ranges)
        if (!isCidr(range)) ctx.addIssue(`${range} is not a CIDR range such as 10.1.0.0/16`)
    }),
  /** The SMTP server of mails. The worker sends them; the API only reports that the variable is missing. */
  SMTP_URL: z
    .url({
      protocol: /^smtps?$/,
      error: 'must be a URL such as smtps://user:password@smtp.example.com',
    })
    .optional(),
  /** The sender address of mails. */
  MAIL_FROM: z
    .string()
    .refine((text) => parseMailbox(text) !== undefined, NOT_A_MAILBOX)
    .optional(),
  /** Traces: standard variables of OpenTelemetry. Its exporter reads further variables itself. */
  OTEL_EXPORTER_OTLP_ENDPOINT: httpUrl.optional(),
  OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: httpUrl.optional(),
  OTEL_EXPORTER_OTLP_PROTOCOL: oneOf(['http/protobuf', 'http/json']).optional(),
  OTEL_EXPORTER_OTLP_TRACES_PROTOCOL: oneOf(['http/protobuf', 'http/json']).optional(),
  OTEL_TRACES_EXPORTER: oneOf(['otlp', 'none']).optional(),
  OTEL_SDK_DISABLED: flag.default(false),
  OTEL_TRACES_SAMPLER: oneOf(SAMPLERS).optional(),
  OTEL_TRACES_SAMPLER_ARG: z.coerce
    .number({ error: 'must be a number from 0 to 1' })
    .min(0, { error: 'must be a number from 0 to 1' })
    .max(1, { error: 'must be a number from 0 to 1' })
    .optional(),
  OTEL_BSP_SCHEDULE_DELAY: whole(1, 3_600_000).optional(),
  OTEL_BSP_EXPORT_TIMEOUT: whole(1, 3_600_000).optional(),
  OTEL_BSP_MAX_QUEUE_SIZE: whole(1, 1_000_000).optional(),
  OTEL_BSP_MAX_EXPORT_BATCH_SIZE: whole(1, 1_000_000).optional(),
  LOG_LEVEL: oneOf(['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent']).default('info'),
  /** The listen address of both processes. */
  HOST: z.string().default('127.0.0.1'),
  /** The bearer token that /metrics requires. Without one, /metrics responds only to requests from this machine. */
  METRICS_TOKEN: z.string().min(16, 'must have at least 16 characters').optional(),
  /** Seconds after SIGTERM within which requests and activities in progress must finish. */
  SHUTDOWN_GRACE: whole(1, 300).default(10),
})

/** The settings of the API only. */
export const apiVariables = z.object({
  PORT: port().default(8080),
  /** The number of trusted proxies that append to X-Forwarded-For. */
  TRUSTED_PROXIES: whole(0, 10).default(0),
  /** The origins whose pages may call /v1 with a key; `*` is every origin. Default: none. */
  CORS_ORIGINS: z
    .string()
    .default('')
    .transform((list) => list.split(/[\s,]+/).filter(Boolean))
    .superRefine((origins, ctx) => {
      for (const origin of origins)
        if (!isOrigin(origin))
          ctx.addIssue(`${origin} is not an origin such as https://app.example.com, or *`)
    }),
  /** Who may sign up: see `SIGN_UP_RULES`. */
  SIGN_UP: oneOf(SIGN_UP_RULES).default('first'),
  /** Whose owner may change the plan: see `PLAN_CHANGE_RULES`. */
  PLAN_CHANGES: oneOf(PLAN_CHANGE_RULES).default('first'),
  /** Time limit for receiving a whole request, in seconds; long enough for an upload of 32 MiB. */
  REQUEST_TIMEOUT: whole(1, 3_600).default(120),
  /** Maximum number of open connections of one process. */
  MAX_CONNECTIONS: whole(1, 100_000).default(2_000),
  /** Seconds after SIGTERM in which /readyz responds with 503 while new requests are still accepted. */
  SHUTDOWN_DELAY: whole(0, 300).default(0),
})

/** The settings of the worker only. */
export const workerVariables = z.object({
  /** The port of the worker's /healthz and /readyz. */
  WORKER_PORT: port().default(8081),
  /** Assigns the database to the Temporal server of the worker, if it belongs to another one. */
  TEMPORAL_ADOPT: flag.default(false),
  TEMPORAL_TASK_QUEUE: z
    .string()
    .max(200, 'must have at most 200 characters')
    .regex(/^[\w.:/-]+$/, 'may contain only letters, digits and . _ - : /')
    .default('agx'),
  /** Daily exchange rates: the XML of the European Central Bank, or JSON with base, date and rates. */
  EXCHANGE_RATES_URL: httpUrl.default('https://www.ecb.europa.eu/stats/eurofxref/eurofxref-daily.xml'),
  /** Records the stack of every promise in workflow code, for the query `__stack_trace`. */
  WORKFLOW_STACK_TRACES: flag.default(false),
})

/** The owner and the key of the first start; generated by default. */
export const bootstrapVariables = z.object({
  BOOTSTRAP_EMAIL: z.email('must be an email address').optional(),
  BOOTSTRAP_PASSWORD: z.string().min(12, 'must have at least 12 characters').optional(),
  BOOTSTRAP_API_KEY: z
    .string()
    .refine(isKey, 'must be agx_, 40 letters or digits, and 6 of their checksum')
    .optional(),
})

function whole(lowest: number, highest: number, error = `must be an integer from ${lowest} to ${highest}`) {
  return z.coerce.number({ error }).int({ error }).min(lowest, { error }).max(highest, { error })
}

function oneOf<const Names extends readonly string[]>(names: Names) {
  return z.enum(names, { error: `must be one of ${names.join(', ')}` })
}

/** Parses `env` with `settings`; an empty variable counts as unset. Throws ConfigError with one line for each problem. */
export function readVariables<S extends z.ZodObject>(settings: S, env: NodeJS.ProcessEnv): z.output<S> {
  const set = Object.fromEntries(Object.entries(env).filter(([, value]) => value !== ''))
  const parsed = settings.safeParse({ ...fromProfile(set), ...set })
  if (!parsed.success)
    throw new ConfigError(
      parsed.error.issues.map((issue) => `${issue.path.join('.')} ${requestMessage(issue)}`).join('\n'),
    )
  const values = parsed.data as z.output<typeof sharedVariables>
  if (values.SMTP_URL && !values.MAIL_FROM)
    throw new ConfigError('MAIL_FROM is missing: mails need a sender address')
  if (values.NODE_ENV === 'production') {
    if (!values.SECRETS_KEY) throw new ConfigError('SECRETS_KEY is missing: production has no default')
    if (values.ALLOW_INSECURE_WEBHOOKS)
      throw new ConfigError('ALLOW_INSECURE_WEBHOOKS must not be set in production: webhooks require https')
  }
  return parsed.data
}

/** The settings of a Temporal profile. */
function fromProfile(env: NodeJS.ProcessEnv): object {
  try {
    const { namespace, connectionOptions } = temporalProfile(env)
    const { address } = connectionOptions
    return {
      ...(namespace && { TEMPORAL_NAMESPACE: namespace }),
      ...(address && { TEMPORAL_ADDRESS: address }),
    }
  } catch (error) {
    throw new ConfigError(`TEMPORAL_CONFIG_FILE or TEMPORAL_PROFILE is invalid: ${(error as Error).message}`)
  }
}

/** Whether the service mails the links of invitations, password resets and sign-ups. Otherwise admins get the links. */
export const mailsLinks = ({
  SMTP_URL,
  PUBLIC_URL,
}: Pick<z.output<typeof sharedVariables>, 'SMTP_URL' | 'PUBLIC_URL'>): boolean =>
  SMTP_URL !== undefined && PUBLIC_URL !== undefined

/** The database logins of api and worker. Throws ConfigError for a single login in production, unless it is allowed. */
export function databaseUrls(settings: z.output<typeof sharedVariables>): DatabaseUrls {
  const { NODE_ENV, DATABASE_URL: url, DATABASE_SYSTEM_URL: systemUrl } = settings
  if (NODE_ENV === 'production' && !systemUrl && !settings.ALLOW_SINGLE_DATABASE_LOGIN)
    throw new ConfigError(
      'DATABASE_SYSTEM_URL is missing: production needs a plain login for each role (README, "Database logins"); ALLOW_SINGLE_DATABASE_LOGIN=true does without',
    )
  return { url, systemUrl }
}

/** The keys of secrets at rest: the sealing key, then those of SECRETS_KEYS_TO_OPEN. */
export function secretsKey(
  settings: Pick<z.output<typeof sharedVariables>, 'SECRETS_KEY' | 'SECRETS_KEYS_TO_OPEN' | 'DATA_DIR'>,
): SecretsKey {
  const further = settings.SECRETS_KEYS_TO_OPEN.map((key) => Buffer.from(key, 'base64'))
  return [sealingKey(settings), ...further]
}

/**
 * `SECRETS_KEY`. Outside production it defaults to a key that is generated on first use and kept in the data folder.
 */
function sealingKey(settings: { SECRETS_KEY?: string | undefined; DATA_DIR: string }): Buffer {
  if (settings.SECRETS_KEY) return Buffer.from(settings.SECRETS_KEY, 'base64')
  const file = join(settings.DATA_DIR, 'secrets.key')
  mkdirSync(settings.DATA_DIR, { recursive: true, mode: 0o700 })
  try {
    const generated = crypto.getRandomValues(Buffer.alloc(32)).toString('base64')
    writeFileSync(file, generated, { mode: 0o600, flag: 'wx' })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  }
  return Buffer.from(readFileSync(file, 'utf8'), 'base64')
}
