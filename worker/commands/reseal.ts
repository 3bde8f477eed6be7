import { type Resealed, reseal } from '../../db/access/reseal.ts'
import { ConfigError } from '../../db/model/config-error.ts'
import { connect } from '../../db/postgres/connect.ts'
import type { System } from '../../db/postgres/tenancy.ts'
import { databaseUrls, readVariables, secretsKey, sharedVariables } from '../../db/process/config.ts'
import { type SecretsKey, sealerOf } from '../../db/process/seal.ts'
import { sealPlain } from '../../db/records/custom-fields/sensitive.ts'
import { redactText } from '../../workflows/shared/redact.ts'

/** Passes after which remaining values must come from a process with another SECRETS_KEY. */
const MAX_PASSES = 5

/**
 * `npm run reseal`, with the environment of api and worker: seals with SECRETS_KEY the values that a key of
 * SECRETS_KEYS_TO_OPEN sealed, and those that a version before has not sealed. The service may run meanwhile. The command
 * can be interrupted and repeated. Exits with 1 if values remain.
 */
try {
  const config = readVariables(sharedVariables, process.env)
  const db = connect({ ...databaseUrls(config), poolSize: 2, applicationName: 'agx reseal' })
  try {
    const keys = secretsKey(config)
    const sealed = await sealPlain(db.system, sealerOf(keys))
    if (sealed > 0) say(`sensitive_values: ${sealed} sealed that were not`)
    process.exitCode = (await resealAll(db.system, keys)) ? 0 : 1
  } finally {
    await db.close()
  }
} catch (error) {
  const reason = error instanceof Error ? error.message : String(error)
  say(error instanceof ConfigError ? reason : `the values cannot be sealed again: ${redactText(reason)}`)
  process.exitCode = 1
}

/** Repeats the pass until it finds nothing: the service may have sealed with an old key meanwhile. */
async function resealAll(system: System, keys: SecretsKey): Promise<boolean> {
  for (let pass = 1; pass <= MAX_PASSES; pass++) {
    const results = await reseal(system, keys)
    for (const { place, resealed } of results)
      if (resealed > 0) say(`${place.table}.${place.column}: ${resealed} sealed again`)
    if (results.every(({ resealed }) => resealed === 0)) return report(results)
  }
  say(
    'values with another key keep appearing: restart every api and worker with the new SECRETS_KEY, then repeat',
  )
  return false
}

function report(results: Resealed[]): boolean {
  for (const { place, unopened } of results)
    for (const { organization_id, key, reason } of unopened)
      say(
        `${place.table}.${place.column} of ${place.key} ${key} in organization ${organization_id}: ${reason}`,
      )
  const remaining = results.reduce((sum, { unopened }) => sum + unopened.length, 0)
  if (remaining > 0)
    say(`${remaining} values remain: give their key in SECRETS_KEYS_TO_OPEN, or set them again`)
  else say('every value is sealed with SECRETS_KEY: SECRETS_KEYS_TO_OPEN can be removed')
  return remaining === 0
}

function say(line: string): void {
  process.stdout.write(`${line}\n`)
}
