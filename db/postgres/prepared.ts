import { createHash } from 'node:crypto'
import pg from 'pg'

/** Characters of SQL. Longer statements are mostly batches of one size, not worth a prepared statement. */
const MAX_LENGTH = 8_000
/** Statements of a pool. The server keeps those of each connection, and the texts of list queries vary without limit. */
const MAX_STATEMENTS = 500

/**
 * Options of a statement whose best plan depends on its values: it is not prepared, because after a few
 * executions PostgreSQL would use a generic plan.
 */
export const PLANNED_ANEW = { plan: 'anew' } as const

/**
 * Age in milliseconds of the plans of a connection at which it discards them. PostgreSQL itself makes a generic plan anew
 * only after ANALYZE, which autovacuum starts once a minute at most. Claims of deliveries were planned while the tables
 * were small, and took a second each until then instead of 2 ms: 500 deliveries to one endpoint of a fresh installation
 * went at 13/s instead of 95/s (`npm run bench -- outgoing`). With `plan_cache_mode = force_custom_plan` instead, a claim
 * takes 3.7 ms of PostgreSQL's CPU time, not 0.5, and a SELECT by primary key 0.45 ms, not 0.2.
 */
const PLANS_MS = 10_000

/** A statement as Knex gives it to pg: the options of the builder are mixed in. */
interface Statement extends Omit<pg.QueryConfig, 'name'> {
  name?: string | undefined
  plan?: 'anew'
}

/**
 * Makes the connections of a pool prepare their statements with parameters, which pg does only for those with a name.
 * Without it GET of one record takes 1.4 times the CPU time of API and PostgreSQL, PostgreSQL's alone 2.4 times, and POST
 * 1.3 times (`npm run bench -- records --only=one`). It replaces `query`, a public method, of each connection;
 * prepared.test.ts fails if Knex does not send its statements by it.
 * @returns a function to call with each new connection.
 */
export function preparedStatements(plansMs = PLANS_MS): (connection: pg.Client) => void {
  const names = new Map<string, string>()
  const nameOf = ({ text, values, plan }: Statement): string | undefined => {
    if (!values?.length || plan === 'anew' || text.length > MAX_LENGTH) return undefined
    const known = names.get(text)
    if (known || names.size === MAX_STATEMENTS) return known
    const given = createHash('sha1').update(text).digest('base64url')
    names.set(text, given)
    return given
  }
  return (connection) => {
    let plannedAt = performance.now()
    const send = (...statement: unknown[]) => Reflect.apply(pg.Client.prototype.query, connection, statement)
    const query = (statement: string | Statement, ...rest: unknown[]) => {
      if (typeof statement === 'object') statement.name ??= nameOf(statement)
      if (performance.now() - plannedAt > plansMs) {
        plannedAt = performance.now()
        // In a transaction that has failed it is refused.
        send('DISCARD PLANS').catch(() => {})
      }
      return send(statement, ...rest)
    }
    connection.query = query as typeof connection.query
  }
}
