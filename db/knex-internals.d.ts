/** The few members of Knex's internal classes that `dialect.ts` extends. */
declare module 'knex/lib/dialects/postgres/index.js' {
  import { Knex } from 'knex'
  export default class PostgresClient extends Knex.Client {
    config: Knex.Config
    transaction(container: unknown, config: { organizationId?: string } | undefined, outer: unknown): unknown
    _query(connection: unknown, query: object): Promise<unknown>
  }
}
declare module 'knex/lib/dialects/postgres/execution/pg-transaction.js' {
  export default class PostgresTransaction {
    constructor(client: unknown, container: unknown, config: unknown, outer: unknown)
    begin(connection: unknown): Promise<unknown>
    savepoint(connection: unknown): Promise<unknown>
    query(connection: unknown, sql: string): Promise<unknown>
  }
}
