import { ConfigError } from '../../db/model/config-error.ts'
import { AppError } from '../../db/model/errors.ts'
import type { Database } from '../../db/postgres/connect.ts'
import { connect } from '../../db/postgres/connect.ts'
import { databaseUrls, readVariables, sharedVariables } from '../../db/process/config.ts'
import { redactText } from '../../workflows/shared/redact.ts'
import { embeddedUrls } from '../dev/postgres/server.ts'

/**
 * Runs a command of the operator on the database, with the environment of the api, or beside `npm start` without one.
 * Prints the reason of a failure, and exits with 1.
 * @param failure the beginning of the message for an unexpected error.
 */
export async function operatorCommand(
  name: string,
  failure: string,
  work: (db: () => Database) => Promise<string>,
): Promise<void> {
  let db: Database | undefined
  try {
    const line = await work(() => {
      db = connect({ ...urls(), poolSize: 2, applicationName: `agx ${name}` })
      return db
    })
    process.stdout.write(`${line}\n`)
  } catch (error) {
    const isOurs = error instanceof ConfigError || error instanceof AppError
    const reason = error instanceof Error ? error.message : String(error)
    process.stderr.write(
      `${isOurs ? reason : `${failure}: ${redactText(reason || 'the database cannot be reached')}`}\n`,
    )
    process.exitCode = 1
  } finally {
    await db?.close()
  }
}

function urls() {
  const { DATA_DIR } = sharedVariables.pick({ DATA_DIR: true }).parse(process.env)
  const { DATABASE_URL, DATABASE_URL_FILE } = process.env
  const embedded = DATABASE_URL || DATABASE_URL_FILE ? undefined : embeddedUrls(DATA_DIR)
  return embedded ?? databaseUrls(readVariables(sharedVariables, process.env))
}
