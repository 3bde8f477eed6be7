import type { Socket } from 'node:net'
import type pg from 'pg'

/**
 * Makes a connection send the statements of one turn of the event loop by one system call, in one packet: BEGIN goes with
 * the first statement, COMMIT with the last. Each packet also wakes the process of PostgreSQL.
 */
export function oneWritePerTurn(connection: pg.Client): void {
  // Not in the types of pg.
  const { stream } = (connection as unknown as { connection: { stream: Socket } }).connection
  const send = connection.query
  let corked = false
  const uncork = () => {
    corked = false
    stream.uncork()
  }
  const query = (...statement: unknown[]) => {
    if (!corked) {
      corked = true
      stream.cork()
      // After the callbacks of promises, which send most statements.
      process.nextTick(uncork)
    }
    return Reflect.apply(send, connection, statement)
  }
  connection.query = query as typeof send
}
