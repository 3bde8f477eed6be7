import { listed, type Port } from './define.ts'
import type { RecordFields, RecordPage, RecordQuery } from './records.ts'

/** What a language model may read: a tool, and the kinds of records that it may read with it. */
export interface Grant {
  tool: string
  entities: string[]
}

/**
 * Reads of the organization's records by a node that calls other services, each in a transaction of its own. Throws
 * NodeError with the store's reason.
 */
export interface Lookups {
  /** Declares what the other service may read; reads nothing. */
  offer(grants: Grant[]): Promise<void>
  get(entity: string, id: string): Promise<RecordFields>
  search(entity: string, query: RecordQuery): Promise<RecordPage>
  listRelated(entity: string, id: string, target: string, limit?: number): Promise<RecordPage>
}

export const lookups: Port<Lookups> = {
  classes: ['external'],
  scoped: true,
  words: {
    offer: {
      call: (grants) =>
        `the model may call ${grants.map(({ tool, entities }) => `${tool} of ${entities.join(', ')}`).join('; ')}`,
      result: () => 'offered',
    },
    get: {
      call: (entity, id) => `reading ${id} of ${entity} for the model`,
      result: ({ object, id }) => `read ${object} ${id}`,
    },
    search: {
      call: (entity, { filters = {} }) =>
        [`searching ${entity} for the model`, ...listed('filters', Object.keys(filters))].join(', '),
      result: found,
    },
    listRelated: {
      call: (entity, id, target) => `listing the ${target} of ${id} of ${entity} for the model`,
      result: found,
    },
  },
}

function found({ data, has_more }: RecordPage): string {
  return `found ${data.length}${has_more ? ', and there are more' : ''}`
}
