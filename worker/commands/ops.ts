import { ConfigError } from '../../db/model/config-error.ts'
import type { Database } from '../../db/postgres/connect.ts'
import { VERSION } from '../../db/process/build.ts'
import type { Row } from '../../db/queue/operator-views.ts'
import { operatorCommand } from './operator-command.ts'
import { ACTIONS } from './ops/actions.ts'
import { VIEWS, viewOrganization } from './ops/views.ts'

const USAGE = `usage: npm run ops -- <${Object.keys(VIEWS).join('|')}> [--json]
       npm run ops -- organization <of> [--json]
${Object.entries(ACTIONS)
  .map(([name, { words }]) => `       npm run ops -- ${[name, ...words].join(' ')} [--dry-run] [--json]`)
  .join('\n')}
what there is to do in all organizations, the use and the open work of one, and what to do after an outage
<of>: an organization id, or the email of an owner; <of|all>: of all organizations`

/** `npm run ops`: shows the operator the work of all organizations, and does for them what no owner should have to do. */
await operatorCommand('ops', 'the command has failed', async (connected) => {
  const given = process.argv.slice(2)
  const flags = given.filter((word) => word.startsWith('--'))
  const [name = '', ...words] = given.filter((word) => !word.startsWith('--'))
  const work = workOf(name, words, flags.includes('--dry-run'))
  if (!work || flags.some((flag) => flag !== '--json' && !(flag === '--dry-run' && isAction(name))))
    throw new ConfigError(USAGE)
  const rows = await work(connected)
  if (flags.includes('--json')) return JSON.stringify({ version: VERSION, [name]: rows })
  return rows.length > 0 ? table(rows) : isAction(name) ? 'nothing to do' : `nothing is ${name}`
})

type Work = (connected: () => Database) => Promise<Row[]>

function isAction(name: string): boolean {
  return Object.hasOwn(ACTIONS, name)
}

/** Undefined for what the usage does not name. */
function workOf(name: string, words: string[], dryRun: boolean): Work | undefined {
  const [of] = words
  if (name === 'organization' && of !== undefined && words.length === 1)
    return (connected) => viewOrganization(connected(), of)
  const view = Object.hasOwn(VIEWS, name) ? VIEWS[name] : undefined
  if (view && words.length === 0) return (connected) => view(connected().system)
  const action = isAction(name) ? ACTIONS[name] : undefined
  if (action && words.length === action.words.length)
    return (connected) => action.perform(connected(), words, dryRun)
  return undefined
}

/** Columns of the same width, under their names. */
function table(rows: Row[]): string {
  const names = Object.keys(rows[0]!)
  const cells = [names, ...rows.map((row) => names.map((name) => textOf(row[name] ?? '')))]
  const widths = names.map((_, column) => Math.max(...cells.map((line) => line[column]!.length)))
  return cells
    .map((line) =>
      line
        .map((cell, column) => cell.padEnd(widths[column]!))
        .join('  ')
        .trimEnd(),
    )
    .join('\n')
}

/** Names and reasons are of tenants: no control character reaches the terminal. */
function textOf(value: string | number | Date): string {
  return (value instanceof Date ? value.toISOString() : String(value)).replace(/\p{Cc}+/gu, ' ')
}
