import { readFileSync } from 'node:fs'
import { ConfigError } from '../model/config-error.ts'

/** Variables that a file may hold instead: `SECRETS_KEY_FILE` names the one of `SECRETS_KEY`. */
export const SECRET_VARIABLES = [
  'DATABASE_URL',
  'DATABASE_SYSTEM_URL',
  'DATABASE_OWNER_URL',
  'SECRETS_KEY',
  'SECRETS_KEYS_TO_OPEN',
  'PAYLOAD_KEY',
  'PAYLOAD_KEYS_TO_OPEN',
  'SMTP_URL',
  'METRICS_TOKEN',
  'MAIL_EVENTS_TOKEN',
  'CODEC_TOKEN',
  'BOOTSTRAP_PASSWORD',
  'BOOTSTRAP_API_KEY',
]

/**
 * The secrets that files hold, as mounted by Docker or Kubernetes, without white space around them. Throws ConfigError
 * for a file that cannot be read or is empty, and for a variable that is given in both ways.
 */
export function secretsOfFiles(env: NodeJS.ProcessEnv): Record<string, string> {
  const given = SECRET_VARIABLES.filter((name) => env[`${name}_FILE`])
  return Object.fromEntries(given.map((name) => [name, secretOf(name, env)]))
}

function secretOf(name: string, env: NodeJS.ProcessEnv): string {
  const variable = `${name}_FILE`
  if (env[name]) throw new ConfigError(`${name} and ${variable} are both set: give one of them`)
  const secret = read(variable, env[variable]!).trim()
  if (secret === '') throw new ConfigError(`${variable} names an empty file`)
  return secret
}

function read(variable: string, path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    throw new ConfigError(`${variable} cannot be read (${(error as NodeJS.ErrnoException).code}): ${path}`)
  }
}
