import { csvLines, writeCell, writeList } from '../model/csv/write-cell.ts'
import type { Tenant } from '../postgres/tenancy.ts'
import { columnsOf, filtered, LISTED, type LogEntry, type LogFilters } from './logs.ts'

/** Entries that are read at once. */
const PAGE = 500

/** The log as CSV, newest first, page by page, each read in a separate transaction as the client takes it. */
export async function* exportLogs(
  tenant: <T>(work: (tx: Tenant) => Promise<T>) => Promise<T>,
  webhookId: string,
  filters: LogFilters,
): AsyncGenerator<string, void, void> {
  yield csvLines([[...LISTED]])
  let last: string | undefined
  do {
    const page = await tenant<LogEntry[]>((tx) => {
      const rows = filtered(tx, webhookId, filters)
        .select(columnsOf(tx, LISTED))
        .orderBy('id', 'desc')
        .limit(PAGE)
      return last ? rows.where('id', '<', last) : rows
    })
    if (page.length > 0) yield csvLines(page.map(cellsOf))
    last = page.length === PAGE ? page.at(-1)!.id : undefined
  } while (last)
}

const cellsOf = (entry: LogEntry): string[] =>
  LISTED.map((column) => {
    const value = entry[column]
    if (Array.isArray(value)) return writeList(value)
    return writeCell(value instanceof Date ? value.toISOString() : value, 'text')
  })
