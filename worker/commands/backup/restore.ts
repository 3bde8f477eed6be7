import { hasContents } from '../../../db/backup/contents.ts'
import { migrate } from '../../../db/migrations/migrate.ts'
import { ConfigError } from '../../../db/model/config-error.ts'
import type { DatabaseUrls } from '../../../db/postgres/roles.ts'
import type { BackupContext } from './context.ts'
import { seconds } from './create.ts'
import { readManifest } from './manifest.ts'
import { runProgram } from './program.ts'
import { verify } from './verify.ts'

/**
 * Restores a dump, in one transaction, into a database without organizations, or with `replaces` over those that it has.
 * The roles and logins, which a dump does not have, are created before, and newer migrations applied after. Throws
 * ConfigError for a database that is not empty, and if the restored rows are not those of the backup.
 */
export async function restore(context: BackupContext, urls: DatabaseUrls, replaces: boolean): Promise<void> {
  const { file, owner, say } = context
  const began = Date.now()
  const { version, taken_at } = readManifest(file)
  await migrate(owner, urls)
  if (!replaces && (await hasContents(owner)))
    throw new ConfigError(
      'the database has organizations: restore into an empty one, or replace what it holds with --replace',
    )
  say(`restoring ${file}, of version ${version}, as at ${taken_at}`)
  await runProgram('pg_restore', [...RESTORE, file], owner)
  if (!(await verify(context)))
    throw new ConfigError(
      'the database was restored, and differs from the backup: do not start its processes',
    )
  const applied = await migrate(owner, urls)
  say(applied.length > 0 ? `applied ${applied.join(', ')}` : 'no migration to apply')
  say(
    `restored in ${seconds(began)} s. Start the first worker once with TEMPORAL_ADOPT=true, with the SECRETS_KEY of the backup and its files. What was revoked since ${taken_at} (keys, sessions, assistants) works again: revoke it anew`,
  )
}

const RESTORE = ['--clean', '--if-exists', '--no-owner', '--single-transaction']
