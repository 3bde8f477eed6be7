/** The few members of Knex's internal classes that `dialect.ts` extends. */
declare module 'knex/lib/dialects/postgres/index.js' {
  import { Knex } from 'knex'
  export default class PostgresClient extends Knex.Client {
    config: Knex.Config
    _query(connection: unknown, query: object): Promise<unknown>
  }
}
