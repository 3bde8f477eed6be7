import type { EventEmitter } from 'node:events'
import type { Knex } from 'knex'
import type pg from 'pg'
import type { Database } from '../../db/postgres/connect.ts'

export interface Statement {
  sql: string
  bindings: readonly unknown[]
}

/** The statements that `work` sends, as the system role or for an organization. */
export async function statementsOf(
  db: Database,
  work: (db: Database) => Promise<unknown>,
): Promise<Statement[]> {
  const sent: Statement[] = []
  const listen = ({ sql, bindings }: Statement) => sent.push({ sql, bindings: bindings ?? [] })
  const during = async <T>(client: EventEmitter, act: () => Promise<T>): Promise<T> => {
    client.on('query', listen)
    try {
      return await act()
    } finally {
      client.removeListener('query', listen)
    }
  }
  const listened: Database = {
    ...db,
    tenant: (organizationId, actor, act) =>
      db.tenant(organizationId, actor, (tx) => during(clientOf(tx.trx), () => act(tx))),
  }
  await during(clientOf(db.system), () => work(listened))
  return sent.filter(({ sql }) => /^\s*(select|insert|update|delete|with)\b/i.test(sql))
}

/** Knex's client, which emits the statements of a pool, also those of its transactions. */
const clientOf = (trx: Knex): EventEmitter => (trx('runs') as unknown as { client: EventEmitter }).client

export interface Plan {
  /** The node types with their table or index, from the root. */
  nodes: string[]
  /** The tables with a full scan. */
  scanned: string[]
  /** Number of rows that the scans read, including filtered rows. */
  rows: number
  ms: number
}

interface Node {
  'Node Type': string
  'Relation Name'?: string
  'Index Name'?: string
  'Actual Rows': number
  'Actual Loops': number
  'Rows Removed by Filter'?: number
  'Rows Removed by Index Recheck'?: number
  Plans?: Node[]
}

/** Executes a statement as the system role, with the lock of a claim, and rolls it back. */
export const planOf = (client: pg.Client, statement: Statement): Promise<Plan> =>
  planAs(client, "set local role agx_system; set local app.has_lock = 'true'", statement)

/** Executes a statement for an organization, behind row-level security, and rolls it back. */
export const planInTenant = (
  client: pg.Client,
  organizationId: string,
  statement: Statement,
): Promise<Plan> =>
  planAs(
    client,
    `set local role agx_app; select set_config('app.organization_id', '${organizationId}', true)`,
    statement,
  )

async function planAs(client: pg.Client, role: string, { sql, bindings }: Statement): Promise<Plan> {
  await client.query(`begin; ${role}`)
  try {
    const { rows } = await client.query(`explain (analyze, format json) ${sql}`, bindings as unknown[])
    const [{ Plan: root, 'Execution Time': ms }] = rows[0]['QUERY PLAN']
    const plan: Plan = { nodes: [], scanned: [], rows: 0, ms }
    walk(root, plan)
    return plan
  } finally {
    await client.query('rollback')
  }
}

function walk(node: Node, plan: Plan): void {
  const of = node['Index Name'] ?? node['Relation Name']
  if (of) plan.nodes.push(`${node['Node Type']} ${of}`)
  if (node['Node Type'] === 'Seq Scan' && node['Actual Loops'] > 0) plan.scanned.push(node['Relation Name']!)
  if (of) {
    const removed = (node['Rows Removed by Filter'] ?? 0) + (node['Rows Removed by Index Recheck'] ?? 0)
    plan.rows += (node['Actual Rows'] + removed) * node['Actual Loops']
  }
  for (const child of node.Plans ?? []) walk(child, plan)
}
