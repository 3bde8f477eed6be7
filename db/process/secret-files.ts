import { readFileSync } from 'node:fs'
import { ConfigError } from '../model/config-error.ts'

/** Settings that a file may hold instead: `SECRETS_KEY_FILE` names the one of `SECRETS_KEY`. */
export const SECRET_SETTINGS = [
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
 * for a file that cannot be read or is empty, and for a setting that is given in both ways.
 */
export function secretsOfFiles(env: NodeJS.ProcessEnv): Record<string, string> {
  const given = SECRET_SETTINGS.filter((name) => env[`${name}_FILE`])
  return Object.fromEntries(given.map((name) => [name, secretOf(name, env)]))
}

function secretOf(name: string, env: NodeJS.ProcessEnv): string {
  const setting = `${name}_FILE`
  if (env[name]) throw new ConfigError(`${name} and ${setting} are both set: give one of them`)
  const secret = read(setting, env[setting]!).trim()
  if (secret === '') throw new ConfigError(`${setting} names an empty file`)
  return secret
}

function read(setting: string, path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    throw new ConfigError(`${setting} cannot be read (${(error as NodeJS.ErrnoException).code}): ${path}`)
  }
}
