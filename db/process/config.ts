import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { isIP } from 'node:net'
import { join, resolve } from 'node:path'
import { z } from 'zod'
import { DEFAULT_POOL, POOL_NAME, POOL_RULE } from '../../workflows/language/pool.ts'
import { NOT_A_MAILBOX, parseMailbox } from '../../workflows/shared/mailbox.ts'
import { requestMessage } from '../../workflows/shared/plain-words.ts'
import { isKey } from '../model/access/key-format.ts'
import { PLAN_CHANGE_RULES } from '../model/access/plan-change-rule.ts'
import { SIGN_UP_RULES } from '../model/access/sign-up-rule.ts'
import { ConfigError } from '../model/config-error.ts'
import type { DatabaseUrls } from '../postgres/roles.ts'
import { isCidr, isHostPattern } from './egress.ts'
import type { SecretsKey } from './seal.ts'
import { secretsOfFiles } from './secret-files.ts'
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

const KEY_RULE = '32 bytes in base64: `openssl rand -base64 32`'
const has32Bytes = (key: string) => Buffer.from(key, 'base64').length === 32

const isOrigin = (text: string) =>
  text === '*' || (/^https?:[^*]+$/.test(text) && URL.canParse(text) && new URL(text).origin === text)

const key = () => z.string().refine(has32Bytes, `must be ${KEY_RULE}`)
const keys = () =>
  z
    .string()
    .default('')
    .transform((list) => list.split(/[\s,]+/).filter(Boolean))
    .refine((list) => list.every(has32Bytes), `must be a comma-separated list, each of ${KEY_RULE}`)

/**
 * What docs/configuration.md says of a variable; `npm run docs` writes its tables. `unset` says what holds without the
 * variable, where the schema has no default that could be shown. As the last call on a schema: the others drop it.
 */
export const about = (description: string, unset?: string) => ({ description, ...(unset && { unset }) })

/** The variables of `npm run migrate`, which also takes those of the first start. */
export const migrationVariables = z.object({
  DATABASE_OWNER_URL: databaseUrl
    .optional()
    .meta(about('the login that owns the tables and migrates them', '`DATABASE_URL`')),
})

/**
 * The variables of both processes. `api/config.ts` and `worker/config.ts` add their own; `npm start` starts both
 * processes and reads all variables.
 */
export const sharedVariables = z.object({
  NODE_ENV: oneOf(['development', 'production', 'test'])
    .default('development')
    .meta(
      about(
        '`production` refuses a generated `SECRETS_KEY`, the embedded PostgreSQL, one login for both roles and ' +
          'webhooks without TLS',
      ),
    ),
  DATA_DIR: z
    .string()
    .min(1)
    .default('.data')
    .transform((path) => resolve(path))
    .meta(about('folder of all local data')),
  DATABASE_URL: databaseUrl.meta(
    about(
      'URL of an external PostgreSQL (15 or later), with the login `agx_app`; required in production',
      'the embedded one, with `npm start`',
    ),
  ),
  DATABASE_SYSTEM_URL: databaseUrl
    .optional()
    .meta(
      about(
        'the login of the system role; required in production ([Database logins](deployment.md#database-logins))',
        'the login of `DATABASE_URL` switches to both roles',
      ),
    ),
  ALLOW_SINGLE_DATABASE_LOGIN: flag
    .default(false)
    .meta(
      about(
        'production with one login for all, which may be a superuser: injected SQL could then leave row-level security',
      ),
    ),
  DATABASE_POOL: whole(2, 200)
    .default(10)
    .meta(
      about(
        'connections per process for tenant transactions; a second pool for other queries has half as many',
      ),
    ),
  SECRETS_KEY: key()
    .optional()
    .meta(
      about(
        'key that encrypts secrets at rest: 32 bytes in base64; required in production',
        'generated, in `DATA_DIR`',
      ),
    ),
  SECRETS_KEYS_TO_OPEN: keys().meta(
    about(
      'comma-separated further keys, which open what they sealed and seal nothing ' +
        '([Another SECRETS_KEY](people-and-keys.md#another-secrets_key))',
    ),
  ),
  PUBLIC_URL: httpUrl
    .optional()
    .meta(
      about(
        'the public URL of the API; with `https` responses have HSTS, and the session cookie is `__Host-agx_session`',
        '`http://localhost:PORT`, with `npm start`',
      ),
    ),
  TEMPORAL_UI_URL: httpUrl
    .optional()
    .meta(about('base URL of the links to runs', 'the embedded one, with `npm start`')),
  TEMPORAL_NAMESPACE: z
    .string()
    .min(1)
    .default('default')
    .meta(
      about(
        'the namespace, also of the embedded server; the other standard `TEMPORAL_*` (API key, TLS) are supported, ' +
          'and a profile if `TEMPORAL_PROFILE` or `TEMPORAL_CONFIG_FILE` is set',
      ),
    ),
  ALLOW_INSECURE_WEBHOOKS: flag
    .default(false)
    .meta(about('deliver to plain `http` too; refused in production')),
  EGRESS_ONLY: z
    .string()
    .default('')
    .transform((list) =>
      list
        .split(/[\s,]+/)
        .filter(Boolean)
        // An address is a range of one.
        .map((one) => (isIP(one) === 0 ? one : `${one}/${isIP(one) === 4 ? 32 : 128}`)),
    )
    .superRefine((list, ctx) => {
      for (const one of list)
        if (!isCidr(one) && !isHostPattern(one))
          ctx.addIssue(`${one} is neither a host such as api.example.com or *.example.com nor a CIDR range`)
    })
    .meta(
      about(
        'if set, nodes and deliveries reach only these (comma-separated): hosts (`api.example.com`; `*.example.com` for ' +
          'the names below it), and CIDRs for URLs with an address. Other names are not even looked up. Private addresses need ' +
          '`EGRESS_ALLOW` too',
      ),
    ),
  EGRESS_ALLOW: z
    .string()
    .default('')
    .transform((list) => list.split(/[\s,]+/).filter(Boolean))
    .superRefine((ranges, ctx) => {
      for (const range of ranges)
        if (!isCidr(range)) ctx.addIssue(`${range} is not a CIDR range such as 10.1.0.0/16`)
    })
    .meta(
      about(
        'private networks (comma-separated CIDRs) that nodes and deliveries may reach; a metadata service of a cloud ' +
          'only if its address is listed by itself (`/32`, `/128`)',
      ),
    ),
  SMTP_URL: z
    .url({
      protocol: /^smtps?$/,
      error: 'must be a URL such as smtps://user:password@smtp.example.com',
    })
    .optional()
    .meta(
      about(
        'the SMTP server of all mails, which the worker sends: `smtp://` (STARTTLS where the server offers it) or ' +
          '`smtps://user:password@host:port`; a password is sent over TLS only, unless the URL ends with ' +
          '`?requireTLS=false`. Set it for the API too, which warns where it is missing',
        'no mails',
      ),
    ),
  MAIL_FROM: z
    .string()
    .refine((text) => parseMailbox(text) !== undefined, NOT_A_MAILBOX)
    .optional()
    .meta(about('the sender of mails, `Example <agx@example.com>`; required with `SMTP_URL`')),
  FILES_DIR: z
    .string()
    .min(1)
    .transform((path) => resolve(path))
    .optional()
    .meta(
      about(
        'folder of the contents of [files](records.md#files), which every api and worker reaches: on several hosts a ' +
          'shared volume',
        '`files` in `DATA_DIR`; in production no files',
      ),
    ),
  FILES_S3_BUCKET: z
    .string()
    .min(1)
    .optional()
    .meta(
      about(
        'bucket of the contents instead of a folder, of S3 or a compatible server; its credentials are the standard ' +
          'ones of AWS (`AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY`, a profile, a role)',
      ),
    ),
  FILES_S3_ENDPOINT: httpUrl
    .optional()
    .meta(about('URL of a server compatible with S3, which is asked with the bucket in the path', 'AWS')),
  FILES_S3_REGION: z.string().min(1).default('us-east-1').meta(about('region of the bucket')),
  // Traces: standard variables of OpenTelemetry, whose exporter reads further ones itself.
  OTEL_EXPORTER_OTLP_ENDPOINT: httpUrl
    .optional()
    .meta(
      about(
        'where [traces](operations.md#traces) are exported to; the other standard variables of the exporter ' +
          '(`…_HEADERS`, `…_TIMEOUT`, `…_COMPRESSION`, `…_CERTIFICATE`) and of the service (its name, resource ' +
          'attributes) apply, too',
        'no traces',
      ),
    ),
  OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: httpUrl
    .optional()
    .meta(about('the same, as the whole URL of the traces', '`/v1/traces` below the endpoint')),
  OTEL_EXPORTER_OTLP_PROTOCOL: oneOf(['http/protobuf', 'http/json'])
    .optional()
    .meta(about('the protocol of the exporter', '`http/protobuf`')),
  OTEL_EXPORTER_OTLP_TRACES_PROTOCOL: oneOf(['http/protobuf', 'http/json'])
    .optional()
    .meta(about('the same, for traces only', '`OTEL_EXPORTER_OTLP_PROTOCOL`')),
  OTEL_TRACES_EXPORTER: oneOf(['otlp', 'none'])
    .optional()
    .meta(
      about(
        '`otlp` exports to `http://localhost:4318` without an endpoint, too; `none` exports nothing',
        '`otlp`, with an endpoint',
      ),
    ),
  OTEL_SDK_DISABLED: flag.default(false).meta(about('`true` exports nothing')),
  OTEL_TRACES_SAMPLER: oneOf(SAMPLERS)
    .optional()
    .meta(about('which traces are exported, decided by the trace id alone', '`always_on`')),
  OTEL_TRACES_SAMPLER_ARG: z.coerce
    .number({ error: 'must be a number from 0 to 1' })
    .min(0, { error: 'must be a number from 0 to 1' })
    .max(1, { error: 'must be a number from 0 to 1' })
    .optional()
    .meta(about('the share of the traces that `traceidratio` exports', '1')),
  OTEL_BSP_SCHEDULE_DELAY: whole(1, 3_600_000)
    .optional()
    .meta(about('milliseconds between two batches of spans', '5000')),
  OTEL_BSP_EXPORT_TIMEOUT: whole(1, 3_600_000).optional().meta(about('milliseconds for one batch', '30000')),
  OTEL_BSP_MAX_QUEUE_SIZE: whole(1, 1_000_000).optional().meta(about('spans that wait', '2048')),
  OTEL_BSP_MAX_EXPORT_BATCH_SIZE: whole(1, 1_000_000).optional().meta(about('spans of one batch', '512')),
  BUILD_COMMIT: z
    .string()
    .regex(/^[0-9a-f]{7,64}$/, 'must be 7 to 64 hexadecimal digits')
    .optional()
    .meta(about('commit that the image was built from, in `/healthz`, logs and metrics; the image sets it')),
  LOG_LEVEL: oneOf(['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'])
    .default('info')
    .meta(about('the least level of log lines')),
  HOST: z.string().default('127.0.0.1').meta(about('listen address of both processes')),
  METRICS_TOKEN: z
    .string()
    .min(16, 'must have at least 16 characters')
    .optional()
    .meta(about('bearer token of `/metrics`', 'only direct requests from this machine are answered')),
  MAIL_EVENTS_TOKEN: z
    .string()
    .min(16, 'must have at least 16 characters')
    .optional()
    .meta(
      about(
        'bearer token of `POST /mails/events`, to which the mail server reports bounces and complaints',
        'only direct requests from this machine are accepted',
      ),
    ),
  SHUTDOWN_GRACE: whole(1, 300)
    .default(10)
    .meta(
      about(
        'seconds after SIGTERM for open requests and activities; the remaining ones are aborted, and another worker ' +
          'retries the activities',
      ),
    ),
})

/** The variables of the API only. */
export const apiVariables = z.object({
  PORT: port().default(8080).meta(about('listen port of the API')),
  TRUSTED_PROXIES: whole(0, 10)
    .default(0)
    .meta(about('number of proxies in front of the API that append to `X-Forwarded-For`')),
  CORS_ORIGINS: z
    .string()
    .default('')
    .transform((list) => list.split(/[\s,]+/).filter(Boolean))
    .superRefine((origins, ctx) => {
      for (const origin of origins)
        if (!isOrigin(origin))
          ctx.addIssue(`${origin} is not an origin such as https://app.example.com, or *`)
    })
    .meta(
      about(
        'comma-separated origins (`https://app.example.com`) whose pages may call `/v1` and `/mcp` from browsers, or `*`; whoever ' +
          'uses the page can read its key, so give it few scopes. `/app` is never allowed',
      ),
    ),
  SIGN_UP: oneOf(SIGN_UP_RULES)
    .default('first')
    .meta(
      about(
        'who may sign up: `first` (only while there is no organization, which is then Enterprise), `open` (anybody, on ' +
          'the plan Free) or `closed`. `npm start` makes the first organization itself, so `first` is `closed` there',
      ),
    ),
  PLAN_CHANGES: oneOf(PLAN_CHANGE_RULES)
    .default('first')
    .meta(
      about(
        'whose owner may change the plan: `first` (of the organization that the first start, or the first sign-up ' +
          'under `SIGN_UP=first`, has made), `open` (of every one: then its plan limits nobody who does not want it) ' +
          'or `closed` (the operator changes plans)',
      ),
    ),
  REQUEST_TIMEOUT: whole(1, 3_600)
    .default(120)
    .meta(about('seconds for receiving a whole request, uploads included; headers have 10, a JSON body 30')),
  KEEP_ALIVE_TIMEOUT: whole(1, 3_600)
    .default(65)
    .meta(
      about(
        'seconds after which an idle connection is closed: more than the idle timeout of a balancer or proxy in front of ' +
          'the api, which otherwise sends a request over a connection that is being closed, and answers with 502',
      ),
    ),
  MAX_CONNECTIONS_PER_ADDRESS: whole(1, 100_000)
    .default(500)
    .meta(
      about(
        'connections of one address (of an IPv6 /64), behind proxies its requests in progress: those above are answered with 503 and `Retry-After`',
      ),
    ),
  MAX_CONNECTIONS: whole(1, 100_000)
    .default(2_000)
    .meta(about('open connections of an api process; those above are closed at once')),
  SHUTDOWN_DELAY: whole(0, 300)
    .default(5)
    .meta(
      about(
        'seconds after SIGTERM in which `/readyz` answers 503 and requests are still accepted, for a balancer that ' +
          'polls it; 0 with `npm start`',
      ),
    ),
})

/** The variables of the worker only. */
export const workerVariables = z.object({
  WORKER_PORT: port().default(8081).meta(about('`/healthz`, `/readyz` and `/metrics` of the worker')),
  TEMPORAL_ADOPT: flag
    .default(false)
    .meta(
      about(
        'a worker refuses a Temporal namespace other than the first one of its database, in which every run would ' +
          'look lost, and a task queue that another database owns; `true` adopts both, and the runs that Temporal lacks resume',
      ),
    ),
  TEMPORAL_TASK_QUEUE: z
    .string()
    .max(200, 'must have at most 200 characters')
    .regex(/^[\w.:/-]+$/, 'may contain only letters, digits and . _ - : /')
    .default('agx')
    .meta(about('task queue of the workers')),
  WORKER_POOL: z
    .string()
    .regex(POOL_NAME, POOL_RULE)
    .refine((pool) => pool !== DEFAULT_POOL, `must not be ${DEFAULT_POOL}: leave it out`)
    .optional()
    .meta(
      about(
        'the [pool](deployment.md#worker-pools) of the worker: it only makes the calls of external nodes that name the pool',
        'the worker runs everything else',
      ),
    ),
  EXCHANGE_RATES_URL: z
    .union([z.literal('shipped'), httpUrl])
    .default('https://www.ecb.europa.eu/stats/eurofxref/eurofxref-daily.xml')
    .meta(
      about(
        'source of exchange rates: the XML of the European Central Bank, or JSON `{"base": "EUR", "date": ' +
          '"2026-01-05", "rates": {"USD": 1.2}}`; it is read when a node needs it, at most once an hour. `shipped`: no source, but the older rates that the service ships',
      ),
    ),
  PAYLOAD_KEY: key()
    .optional()
    .meta(
      about(
        'key that encrypts what workflows, activities and their errors leave in Temporal: 32 bytes in base64 ' +
          '([Encrypted histories](operations.md#encrypted-histories))',
        'it is stored in plain text; it holds ids, titles and error messages',
      ),
    ),
  PAYLOAD_KEYS_TO_OPEN: keys().meta(
    about('comma-separated further keys, which open what they encrypted and encrypt nothing'),
  ),
  CODEC_TOKEN: z
    .string()
    .min(16, 'must have at least 16 characters')
    .optional()
    .meta(
      about(
        'bearer token of `/codec` of the worker, which decrypts payloads for the UI and the CLI of Temporal',
        'only direct requests from this machine are answered',
      ),
    ),
  WORKFLOW_STACK_TRACES: flag
    .default(false)
    .meta(
      about(
        'records stacks in workflow code, for "Call Stack" in the Temporal UI; costs time in every workflow task, and ' +
          'seconds in one with thousands of signals',
      ),
    ),
})

/** The owner and the key of the first start; generated by default. */
export const bootstrapVariables = z.object({
  BOOTSTRAP_EMAIL: z
    .email('must be an email address')
    .optional()
    .meta(
      about(
        'the owner of the first organization, which `npm run migrate` makes only if a `BOOTSTRAP_…` is set',
        '`owner@example.com`',
      ),
    ),
  BOOTSTRAP_PASSWORD: z
    .string()
    .min(12, 'must have at least 12 characters')
    .optional()
    .meta(about('the password of the first owner', 'generated')),
  BOOTSTRAP_API_KEY: z
    .string()
    .refine(isKey, 'must be agx_, 40 letters or digits, and 6 of their checksum')
    .optional()
    .meta(about('the first key: `agx_`, 40 letters or digits, and 6 of their checksum', 'generated')),
})

function whole(lowest: number, highest: number, error = `must be an integer from ${lowest} to ${highest}`) {
  return z.coerce.number({ error }).int({ error }).min(lowest, { error }).max(highest, { error })
}

function oneOf<const Names extends readonly string[]>(names: Names) {
  return z.enum(names, { error: `must be one of ${names.join(', ')}` })
}

/** Parses `env` with `schema`; an empty variable counts as unset. Throws ConfigError with one line for each problem. */
export function readVariables<S extends z.ZodObject>(schema: S, env: NodeJS.ProcessEnv): z.output<S> {
  const set = Object.fromEntries(Object.entries(env).filter(([, value]) => value !== ''))
  const parsed = schema.safeParse({ ...fromProfile(set), ...set, ...secretsOfFiles(set) })
  if (!parsed.success)
    throw new ConfigError(
      parsed.error.issues.map((issue) => `${issue.path.join('.')} ${requestMessage(issue)}`).join('\n'),
    )
  const values = parsed.data as z.output<typeof sharedVariables>
  if (values.FILES_DIR && values.FILES_S3_BUCKET)
    throw new ConfigError('FILES_DIR and FILES_S3_BUCKET are both set: files are kept in one of them')
  if (values.SMTP_URL && !values.MAIL_FROM)
    throw new ConfigError('MAIL_FROM is missing: mails need a sender address')
  if (values.NODE_ENV === 'production') {
    if (!values.SECRETS_KEY) throw new ConfigError('SECRETS_KEY is missing: production has no default')
    if (values.ALLOW_INSECURE_WEBHOOKS)
      throw new ConfigError('ALLOW_INSECURE_WEBHOOKS must not be set in production: webhooks require https')
  }
  return parsed.data
}

/** The variables that a Temporal profile stands for. */
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
export function databaseUrls(config: z.output<typeof sharedVariables>): DatabaseUrls {
  const { NODE_ENV, DATABASE_URL: url, DATABASE_SYSTEM_URL: systemUrl } = config
  if (NODE_ENV === 'production' && !systemUrl && !config.ALLOW_SINGLE_DATABASE_LOGIN)
    throw new ConfigError(
      'DATABASE_SYSTEM_URL is missing: production needs a plain login for each role (docs/deployment.md, "Database logins"); ALLOW_SINGLE_DATABASE_LOGIN=true does without',
    )
  return { url, systemUrl }
}

/** The keys of secrets at rest: the sealing key, then those of SECRETS_KEYS_TO_OPEN. */
export function secretsKey(
  config: Pick<z.output<typeof sharedVariables>, 'SECRETS_KEY' | 'SECRETS_KEYS_TO_OPEN' | 'DATA_DIR'>,
): SecretsKey {
  const further = config.SECRETS_KEYS_TO_OPEN.map((key) => Buffer.from(key, 'base64'))
  return [sealingKey(config), ...further]
}

/** The keys of payloads in Temporal, each of 32 bytes. */
export interface PayloadKeys {
  /** Absent: payloads are stored in plain text. */
  encrypt?: Buffer
  /** Further keys, which only decrypt. */
  open: Buffer[]
}

export const payloadKeys = ({
  PAYLOAD_KEY,
  PAYLOAD_KEYS_TO_OPEN,
}: Pick<z.output<typeof workerVariables>, 'PAYLOAD_KEY' | 'PAYLOAD_KEYS_TO_OPEN'>): PayloadKeys => ({
  ...(PAYLOAD_KEY !== undefined && { encrypt: Buffer.from(PAYLOAD_KEY, 'base64') }),
  open: PAYLOAD_KEYS_TO_OPEN.map((text) => Buffer.from(text, 'base64')),
})

/**
 * `SECRETS_KEY`. Outside production it defaults to a key that is generated on first use and kept in the data folder.
 */
function sealingKey(config: { SECRETS_KEY?: string | undefined; DATA_DIR: string }): Buffer {
  if (config.SECRETS_KEY) return Buffer.from(config.SECRETS_KEY, 'base64')
  const file = join(config.DATA_DIR, 'secrets.key')
  mkdirSync(config.DATA_DIR, { recursive: true, mode: 0o700 })
  try {
    const generated = crypto.getRandomValues(Buffer.alloc(32)).toString('base64')
    writeFileSync(file, generated, { mode: 0o600, flag: 'wx' })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  }
  return Buffer.from(readFileSync(file, 'utf8'), 'base64')
}
