import type { Port } from './define.ts'

/** Values that the organization keeps between runs, by key. Every write happens once, also after a reset of the run. */
export interface KeyValues {
  /** Undefined if there is none. */
  get(key: string): Promise<KeyValue | undefined>
  /** @param ttlMs until it expires; null: never. With `onlyIfAbsent` an existing value stays. */
  set(
    key: string,
    value: unknown,
    options: { ttlMs: number | null; onlyIfAbsent: boolean },
  ): Promise<KeyValue & { stored: boolean }>
  /** Adds to a number. A new one starts at 0, and expires after `ttlMs`. */
  increment(key: string, by: number, ttlMs: number | null): Promise<KeyValue>
  delete(key: string): Promise<{ key: string; deleted: boolean }>
  list(prefix: string, limit: number): Promise<{ data: KeyValue[]; has_more: boolean }>
}

export interface KeyValue {
  key: string
  value: unknown
  expires_at: string | null
}

export const keyValues: Port<KeyValues> = {
  classes: ['read', 'write'],
  scoped: false,
  words: {
    get: {
      call: (key) => `reading the key ${key}`,
      result: (found, key) => (found ? `read the key ${key}` : `the key ${key} is absent`),
    },
    set: {
      call: (key, _, { onlyIfAbsent }) => `setting the key ${key}${onlyIfAbsent ? ' if it is absent' : ''}`,
      result: ({ stored }, key) => (stored ? `set the key ${key}` : `the key ${key} was there already`),
    },
    increment: {
      call: (key) => `incrementing the key ${key}`,
      result: (_, key) => `incremented the key ${key}`,
    },
    delete: {
      call: (key) => `deleting the key ${key}`,
      result: ({ deleted }, key) => (deleted ? `deleted the key ${key}` : `the key ${key} was absent`),
    },
    list: {
      call: (prefix) => `listing keys that begin with ${JSON.stringify(prefix)}`,
      result: ({ data, has_more }) => `found ${data.length} keys${has_more ? ', and there are more' : ''}`,
    },
  },
}
