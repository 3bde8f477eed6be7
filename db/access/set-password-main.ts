import { randomBytes } from 'node:crypto'
import { redactText } from '../../workflows/redact.ts'
import { ConfigError, databaseUrls, readSettings, sharedSettings } from '../config.ts'
import { AppError } from '../errors.ts'
import { connect } from '../postgres/connect.ts'
import { embeddedUrls } from '../postgres/embedded/server.ts'
import { setPassword } from './password-resets.ts'

/**
 * `npm run set-password -- <email>`: gives a user a new password, prints it and ends the user's sessions. With the
 * environment of the api, or beside `npm start` without one.
 */
try {
  const [email, ...others] = process.argv.slice(2)
  if (!email || others.length > 0) throw new ConfigError('usage: npm run set-password -- <email>')
  const { DATA_DIR } = sharedSettings.pick({ DATA_DIR: true }).parse(process.env)
  const embedded = process.env.DATABASE_URL ? undefined : embeddedUrls(DATA_DIR)
  const urls = embedded ?? databaseUrls(readSettings(sharedSettings, process.env))
  const db = connect({ ...urls, poolSize: 2, applicationName: 'agx set-password' })
  try {
    const password = randomBytes(12).toString('base64url')
    await setPassword(db.system, email, password)
    process.stdout.write(`password of ${email} (shown once): ${password}\n`)
  } finally {
    await db.close()
  }
} catch (error) {
  const isOurs = error instanceof ConfigError || error instanceof AppError
  const reason = error instanceof Error ? error.message : String(error)
  process.stderr.write(
    `${isOurs ? reason : `the password cannot be set: ${redactText(reason || 'the database cannot be reached')}`}\n`,
  )
  process.exitCode = 1
}
