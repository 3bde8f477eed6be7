import { readFileSync, writeFileSync } from 'node:fs'
import type { Contents, Snapshot } from '../../../db/backup/contents.ts'
import { ConfigError } from '../../../db/model/config-error.ts'

/** What a dump holds: written beside it, and compared with a restored database. */
export interface Manifest {
  /** The version of the service that made it. */
  version: string
  /** The moment that the dump shows. */
  taken_at: string
  contents: Contents[]
}

/** The file of the manifest of a dump. */
export const manifestOf = (dump: string): string => `${dump}.json`

export function writeManifest(dump: string, manifest: Manifest): void {
  writeFileSync(manifestOf(dump), `${JSON.stringify(manifest)}\n`)
}

/** Throws ConfigError if there is none. */
export function readManifest(dump: string): Manifest {
  let text: string
  try {
    text = readFileSync(manifestOf(dump), 'utf8')
  } catch {
    throw new ConfigError(`${manifestOf(dump)} cannot be read: \`create\` writes it beside the dump`)
  }
  return JSON.parse(text)
}

/** All contents, with a line of progress every two seconds. */
export async function readContents(snapshot: Snapshot, say: (line: string) => void): Promise<Contents[]> {
  const all: Contents[] = []
  let last = Date.now()
  for await (const contents of snapshot.contents()) {
    all.push(contents)
    if (Date.now() - last < 2_000) continue
    last = Date.now()
    say(`checksums: ${contents.table} is read`)
  }
  return all
}

export const rowsOf = (contents: readonly Contents[]): number =>
  contents.reduce((sum, { rows }) => sum + rows, 0)
