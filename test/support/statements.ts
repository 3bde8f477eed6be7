import pg from 'pg'

/**
 * Records the statements that this process sends to PostgreSQL, each with the tag of its result, which has the number of
 * rows: `select … → SELECT 1`. Ids are left out.
 */
export function recordStatements() {
  const query = pg.Query.prototype as unknown as {
    text?: string
    handleCommandComplete(message: { text: string }, ...rest: unknown[]): void
  }
  const original = query.handleCommandComplete
  let recorded: string[] = []
  query.handleCommandComplete = function (message, ...rest) {
    recorded.push(`${withoutIds(this.text ?? '')} → ${message.text}`)
    return original.call(this, message, ...rest)
  }
  return {
    /** Those since the last call. */
    take(): string[] {
      const taken = recorded
      recorded = []
      return taken
    },
    stop() {
      query.handleCommandComplete = original
    },
  }
}

const withoutIds = (text: string) => text.replaceAll(/[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, '?')
