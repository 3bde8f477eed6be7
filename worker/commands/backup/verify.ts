import { type Contents, readSnapshot } from '../../../db/backup/contents.ts'
import type { BackupContext } from './context.ts'
import { type Manifest, readContents, readManifest, rowsOf } from './manifest.ts'

/** How many differences are printed. */
const SHOWN = 20

/** Compares the database with the manifest, and prints the result. @returns whether they are equal. */
export async function verify({ file, owner, say }: BackupContext): Promise<boolean> {
  const manifest = readManifest(file)
  const contents = await readSnapshot(owner, (snapshot) => readContents(snapshot, say))
  const found = differences(manifest, contents)
  for (const line of found.slice(0, SHOWN)) say(line)
  if (found.length > SHOWN) say(`and ${found.length - SHOWN} more`)
  say(
    found.length === 0
      ? `verified: ${rowsOf(contents)} rows, as at ${manifest.taken_at}`
      : `${found.length} differences from the backup of ${manifest.taken_at}. A database with other migrations, or whose processes have run, differs always`,
  )
  return found.length === 0
}

/** A line for each table and organization whose rows are not those of the manifest. */
function differences(manifest: Manifest, contents: readonly Contents[]): string[] {
  const keyOf = ({ table, organization }: Contents) => `${table} of ${organization ?? 'no organization'}`
  const now = new Map(contents.map((one) => [keyOf(one), one]))
  const then = new Map(manifest.contents.map((one) => [keyOf(one), one]))
  return [...new Set([...then.keys(), ...now.keys()])].flatMap((key) => {
    const [was, is] = [then.get(key), now.get(key)]
    if (was?.rows !== is?.rows) return [`${key}: ${was?.rows ?? 0} rows in the backup, ${is?.rows ?? 0} here`]
    return was!.checksum === is!.checksum ? [] : [`${key}: ${was!.rows} rows, whose values differ`]
  })
}
