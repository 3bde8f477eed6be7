import assert from 'node:assert/strict'
import { closeSync, openSync, readdirSync, readSync } from 'node:fs'
import { join } from 'node:path'
import type pg from 'pg'
import type { DestinationStream } from 'pino'
import { generateKey, keyOf } from '../../db/model/access/key-format.ts'
import { indexOfSecret } from './made-secrets.ts'

/**
 * Planted secrets: the API keys, passwords and secrets of tests contain a marker, and the suite searches for it, and
 * for the secrets that the service makes itself (`made-secrets.ts`), wherever the service writes: the logs of APIs and
 * workers in this process, the output of processes, the data folders of stacks (logs, PostgreSQL, Temporal), the tables
 * of each test file's database at its end, and the database and log of the suite's Temporal server. Answers of the API
 * are not searched: some show a secret once.
 *
 * A leak fails the file after whose end it is found (`mochaHooks` in global.ts).
 */

/** Letters and digits only, so that JSON, URLs and keys leave it as it is. */
const MARKER = 'PLANTEDk7Qz'

/** A secret for a test. */
export const planted = (text: string): string => `${MARKER}-${text}`

/** An API key with the marker behind its visible prefix. */
export function plantedKey(): string {
  const random = generateKey().slice(4, 44)
  return keyOf(random.slice(0, 12) + MARKER + random.slice(12 + MARKER.length))
}

/** The marker, also in hexadecimal and within base64, at each position in a group of three bytes. */
const NEEDLES = [
  MARKER,
  Buffer.from(MARKER).toString('hex'),
  ...[0, 1, 2].map((before) => {
    const text = Buffer.from('x'.repeat(before) + MARKER).toString('base64')
    // The first and last characters also contain bits of the neighbouring bytes.
    return text.slice(before === 0 ? 0 : before + 1, Math.floor(((before + MARKER.length) * 8) / 6))
  }),
]

const leaks: string[] = []

/** Searches for planted secrets, for those that the service has made, and for `others` as they are. */
function search(where: string, text: string | Buffer, others: readonly string[] = []): void {
  const data = typeof text === 'string' ? Buffer.from(text) : text
  const found = [...NEEDLES, ...others].map((needle) => data.indexOf(needle))
  for (const at of [...found, indexOfSecret(data)]) {
    if (at < 0) continue
    const around = data.toString('utf8', Math.max(0, at - 200), at + 60)
    leaks.push(`${where}: ${around.replaceAll(/\p{Cc}+/gu, '·')}`)
  }
}

export const searchText = (where: string, text: string, others?: readonly string[]): void =>
  search(where, text, others)

/** Characters of a log that are kept. */
const KEPT = 8 * 1024 * 1024

/** Logs by name, with the lines to search: a test may learn a secret only after it was logged. */
const logs = new Map<string, { lines: string[]; size: number }>()

/** A log that is kept until it is searched. */
export function searchedLog(name: string): DestinationStream {
  const log = logs.get(name) ?? { lines: [], size: 0 }
  logs.set(name, log)
  return {
    write(line) {
      log.lines.push(line)
      log.size += line.length
      if (log.size > KEPT) searchLog(name, log.lines.splice(0, Math.ceil(log.lines.length / 2)))
    },
  }
}

function searchLog(name: string, lines: string[]): void {
  search(`the log of the ${name}`, lines.join(''))
  const log = logs.get(name)!
  log.size = log.lines.reduce((sum, line) => sum + line.length, 0)
}

const CHUNK = 8 * 1024 * 1024
const OVERLAP = 256

/** Searches every file of a folder, also binary ones. */
export function searchFolder(folder: string, others: readonly string[] = []): void {
  const buffer = Buffer.allocUnsafe(OVERLAP + CHUNK)
  for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile()) continue
    const path = join(entry.parentPath, entry.name)
    let file: number
    try {
      file = openSync(path, 'r')
    } catch {
      // A running server may have deleted it.
      continue
    }
    let kept = 0
    for (
      let read = readSync(file, buffer, 0, CHUNK, null);
      read > 0;
      read = readSync(file, buffer, kept, CHUNK, null)
    ) {
      const found = buffer.subarray(0, kept + read)
      search(path, found, others)
      kept = Math.min(OVERLAP, found.length)
      found.copyWithin(0, found.length - kept)
    }
    closeSync(file)
  }
}

/** Maximum number of searched rows of a table; tables with more rows belong to tests of volume. */
const MAX_ROWS = 20_000

/** Searches every table of a test's database. */
export async function searchTables(client: pg.Client): Promise<void> {
  const tables = await client.query<{ name: string }>(
    `select relname as name from pg_class where relnamespace = 'public'::regnamespace and relkind in ('r', 'p')`,
  )
  const contents = tables.rows.map(
    ({ name }) =>
      `select '${name}' as name, string_agg(x::text, E'\\n') as all from (select * from "${name}" limit ${MAX_ROWS}) x`,
  )
  const { rows } = await client.query<{ name: string; all: string | null }>(contents.join(' union all '))
  for (const { name, all } of rows) search(`the table ${name}`, all ?? '')
}

/** Searches the logs. Throws if a search has found something since the last call. */
export function assertNoLeaks(): void {
  for (const [name, { lines }] of logs) searchLog(name, lines.splice(0))
  assert.deepEqual(leaks.splice(0), [], 'planted secrets were found where none must be')
}
