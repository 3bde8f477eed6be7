import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const ROOT = fileURLToPath(new URL('../../', import.meta.url))

/** The tables whose status only the move files may change, and the paths of these files. */
const MOVES: Record<string, RegExp> = {
  runs: /^db\/runs\/moves\//,
  deliveries: /^db\/outgoing\/moves\//,
  imports: /^db\/files\/moves\//,
  exports: /^db\/files\/moves\//,
  run_batch_items: /^db\/runs\/batches\.ts$/,
  bulk_job_items: /^db\/records\/bulk\/advance\.ts$/,
}

/** Where the table is a variable: in the move files, and in that of replays, whose type names its tables. */
const REPLAYS = /^db\/queue\/replays\.ts$/
const ANY = new RegExp(`moves/|${REPLAYS.source}`)
const MOVES_OF_ANY: Record<string, RegExp> = { incoming_replays: REPLAYS, outgoing_replays: REPLAYS }

describe('statuses of runs, deliveries, files, replays and batches', () => {
  const files = ['api', 'worker', 'activities', 'workflows', 'db'].flatMap((room) =>
    readdirSync(join(ROOT, room), { recursive: true, encoding: 'utf8' })
      .map((path) => join(room, path))
      .filter((path) => path.endsWith('.ts') && !path.startsWith('db/migrations/')),
  )

  it('are changed by the statements of the move files only', () => {
    const otherWrites = files.flatMap((path) =>
      statusWrites(readFileSync(join(ROOT, path), 'utf8'))
        .filter(({ table }) => !(MOVES[table] ?? MOVES_OF_ANY[table] ?? ANY).test(path))
        .map(({ text }) => `${path}: ${text}`),
    )
    assert.deepEqual(otherWrites, [])
  })

  it('are changed in the move files: the check finds these statements', () => {
    for (const [table, place] of Object.entries(MOVES)) {
      const found = files
        .filter((path) => place.test(path))
        .flatMap((path) => statusWrites(readFileSync(join(ROOT, path), 'utf8')))
      assert.ok(
        found.some((write) => write.table === table),
        table,
      )
    }
  })

  for (const [what, source] of Object.entries({
    'an update': "raw(`update runs r set status = 'failed', error = ? where id = ?`)",
    'an update with the status last': "raw(`update deliveries set held_for = 'quota', status = 'held'`)",
    'an update of any table': `raw(\`update \${table} set status = ?\`)`,
    'a builder': "tx.trx('imports').where({ id }).update({ error, status: 'failed' })",
    'a builder over several lines': "tx\n  .trx('exports')\n  .where({ id })\n  .update({\n    status,\n  })",
    'a builder with spread values': "system('runs').where({ id }).update({ ...values, error })",
    'a builder with a variable': "system('runs').where({ id }).update(values)",
    'a builder of any table': "system(sort.table).where({ id }).update({ status: 'failed' })",
    'an upsert': "trx('deliveries').insert(rows).onConflict('id').merge()",
  }))
    it(`are changed by ${what}`, () => assert.equal(statusWrites(source).length, 1))

  for (const [what, source] of Object.entries({
    'a lease': "raw(`update runs set lease_until = now() where status = 'queued'`)",
    'a condition of a builder': "trx('runs').where({ status: 'running' }).update({ stuck_reason: null })",
    'a comparison': "raw(`update runs set lease_until = case when status = 'queued' then lease_until end`)",
    'another table': "raw(`update run_nodes set status = 'failed'`)",
    'a read': "trx('imports').where({ id }).first('status')\n\ntrx('users').update({ status })",
  }))
    it(`are not changed by ${what}`, () => assert.deepEqual(statusWrites(source), []))
})

const TABLE = Object.keys({ ...MOVES, ...MOVES_OF_ANY }).join('|')
/** An UPDATE as text; `set` ends at the next clause or the end of the text. */
const UPDATE = new RegExp(
  `\\bupdate\\s+(${TABLE}|\\$\\{[^}]+\\})\\s(?:\\w+\\s)?\\s*set\\b([\\s\\S]*?)(?=\\bwhere\\b|\\bfrom\\b|\`|$)`,
  'g',
)
/** A builder on one of the tables, or on a table named by a variable, up to the end of its expression. */
const BUILDER = new RegExp(
  `\\((?:'(${TABLE})(?: as \\w+)?'|(?:\\w+\\.)?(table))\\)([\\s\\S]*?)(?=\\n\\s*\\n|;|\\n\\}|$)`,
  'g',
)

/** The statements of a source file that may change the status of one of the tables. */
function statusWrites(source: string): { table: string; text: string }[] {
  const updates = [...source.matchAll(UPDATE)].map(([text, table = '', set = '']) => ({
    table,
    text,
    writes: /(?:^|,|\n)\s*status\s*=/.test(set),
  }))
  const builders = [...source.matchAll(BUILDER)].map(([text, named, any, chain = '']) => {
    const [, values] = /\.(?:update|merge)\(([\s\S]*)/.exec(chain) ?? []
    return {
      table: named ?? any ?? '',
      text,
      writes: values !== undefined && /\bstatus\b|\.\.\.|^\s*[a-z]\w*\)|^\)/.test(values),
    }
  })
  return [...updates, ...builders].filter(({ writes }) => writes).map(({ table, text }) => ({ table, text }))
}
