import { renameSync, rmSync, statSync } from 'node:fs'
import { readSnapshot } from '../../../db/backup/contents.ts'
import { VERSION } from '../../../db/process/build.ts'
import type { BackupContext } from './context.ts'
import { manifestOf, readContents, rowsOf, writeManifest } from './manifest.ts'
import { runProgram } from './program.ts'

/**
 * Dumps the database, and its contents by organization, of one moment: both read the same snapshot. An earlier dump of
 * that name is replaced when the new one is whole.
 */
export async function create({ file, owner, say }: BackupContext): Promise<void> {
  const began = Date.now()
  const part = `${file}.part`
  try {
    await readSnapshot(owner, async (snapshot) => {
      const taken_at = new Date().toISOString()
      say(`dumping to ${file}; checksums meanwhile`)
      const args = ['--format=custom', '--enable-row-security', `--snapshot=${snapshot.id}`, `--file=${part}`]
      const [contents] = await Promise.all([readContents(snapshot, say), runProgram('pg_dump', args, owner)])
      writeManifest(part, { version: VERSION, taken_at, contents })
      renameSync(manifestOf(part), manifestOf(file))
      renameSync(part, file)
      const organizations = new Set(contents.map(({ organization }) => organization).filter(Boolean)).size
      say(
        `${file} and ${manifestOf(file)}: ${rowsOf(contents)} rows of ${organizations} organizations, ${statSync(file).size} bytes, in ${seconds(began)} s. Keep SECRETS_KEY elsewhere, and copy the files now`,
      )
    })
  } finally {
    for (const left of [part, manifestOf(part)]) rmSync(left, { force: true })
  }
}

/** Since `began`, in seconds with one decimal. */
export const seconds = (began: number): string => ((Date.now() - began) / 1_000).toFixed(1)
