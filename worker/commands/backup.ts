import { ConfigError } from '../../db/model/config-error.ts'
import { databaseUrls, migrationVariables, readVariables, sharedVariables } from '../../db/process/config.ts'
import { redactText } from '../../workflows/shared/redact.ts'
import type { BackupContext } from './backup/context.ts'
import { create } from './backup/create.ts'
import { ProgramError } from './backup/program.ts'
import { restore } from './backup/restore.ts'
import { verify } from './backup/verify.ts'

const USAGE = `usage: npm run backup -- create <file>
       npm run backup -- restore <file> [--replace]
       npm run backup -- verify <file>
create: dumps the database to <file>, and its rows and checksums by organization to <file>.json, while everything runs
restore: into an empty database (--replace: or over what it holds), verified, and migrated to this version
verify: compares a restored database, before its processes start, with <file>.json
Needs DATABASE_OWNER_URL, and pg_dump and pg_restore of at least the server's version. SECRETS_KEY and files are not in it.`

// The dump has the data of all organizations: nobody else may read it, also while it is written.
process.umask(0o077)

/** `npm run backup`. Exits with 1 if it fails, or if a restored database differs from the backup. */
try {
  const words = process.argv.slice(2).filter((word) => word !== '--replace')
  const replaces = process.argv.includes('--replace')
  const [name, file, ...others] = words
  if (!file || others.length > 0 || (replaces && name !== 'restore')) throw new ConfigError(USAGE)
  const config = readVariables(sharedVariables.extend(migrationVariables.shape), process.env)
  const urls = databaseUrls(config)
  const owner = config.DATABASE_OWNER_URL ?? urls.url
  const context: BackupContext = { file, owner, say: (line) => process.stdout.write(`${line}\n`) }
  if (name === 'create') await create(context)
  else if (name === 'restore') await restore(context, urls, replaces)
  else if (name === 'verify') process.exitCode = (await verify(context)) ? 0 : 1
  else throw new ConfigError(USAGE)
} catch (error) {
  const isOurs = error instanceof ConfigError || error instanceof ProgramError
  const reason = error instanceof Error ? error.message : String(error)
  process.stderr.write(`${isOurs ? reason : `the backup has failed: ${redactText(reason)}`}\n`)
  process.exitCode = 1
}
