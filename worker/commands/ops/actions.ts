import { organizationNamed } from '../../../db/access/plan-changes.ts'
import { SYSTEM } from '../../../db/model/actor.ts'
import { ConfigError } from '../../../db/model/config-error.ts'
import { AppError } from '../../../db/model/errors.ts'
import {
  activateTurnedOff,
  countFailed,
  listActive,
  listTurnedOff,
  replayFailed,
  type WebhookKey,
} from '../../../db/outgoing/after-outage.ts'
import type { Database } from '../../../db/postgres/connect.ts'
import type { Tenant } from '../../../db/postgres/tenancy.ts'
import type { Row } from '../../../db/queue/operator-views.ts'

export interface Action {
  /** What is given to it, for the usage. */
  words: string[]
  /** `dryRun`: changes nothing. @returns what was done, a row for each webhook. */
  perform(db: Database, words: string[], dryRun: boolean): Promise<Row[]>
}

/** For webhooks of one organization, or of all. */
export const ACTIONS: Record<string, Action> = {
  resume: {
    words: ['<of|all>'],
    perform: async (db, [of], dryRun) =>
      eachOf(db, await listTurnedOff(db.system, await chosen(db, of!)), async (tx, id) => {
        if (dryRun) return 'would be activated'
        return (await activateTurnedOff(tx, id)) ? 'activated' : undefined
      }),
  },
  retry: {
    words: ['<of|all>', '<since, such as 2026-01-31T09:30:00Z>'],
    async perform(db, [of, text], dryRun) {
      const since = momentOf(text!)
      return eachOf(db, await listActive(db.system, await chosen(db, of!)), async (tx, id) => {
        const count = await countFailed(tx, id, since)
        if (count === 0) return undefined
        if (dryRun) return `${count} would be sent again`
        return `${count} are sent again by the replay ${await replayFailed(tx, id, since)}`
      })
    },
  },
}

/** The id of the organization; undefined: all. Throws not_found. */
const chosen = async ({ system }: Database, of: string): Promise<string | undefined> =>
  of === 'all' ? undefined : (await organizationNamed(system, of)).id

/** Throws ConfigError for a text that is no time of the past. */
function momentOf(text: string): Date {
  const at = new Date(text)
  // `!(a < b)`: also for an invalid date.
  if (!(at.getTime() < Date.now()))
    throw new ConfigError(`${text} is no time of the past: give one such as 2026-01-31T09:30:00Z`)
  return at
}

/** The outcome for each webhook; without a row where there was nothing to do. One that is refused stops no other. */
async function eachOf(
  db: Database,
  webhooks: WebhookKey[],
  work: (tx: Tenant, id: string) => Promise<string | undefined>,
): Promise<Row[]> {
  const rows: Row[] = []
  for (const { organization_id, id } of webhooks) {
    const outcome = await db
      .tenant(organization_id, SYSTEM, (tx) => work(tx, id))
      .catch((error: unknown) => {
        if (error instanceof AppError) return `refused: ${error.message}`
        throw error
      })
    if (outcome !== undefined) rows.push({ organization_id, webhook_id: id, outcome })
  }
  return rows
}
