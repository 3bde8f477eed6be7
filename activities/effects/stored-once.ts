import { createHash } from 'node:crypto'
import { v7 as uuidv7 } from 'uuid'
import type { EffectHost } from './define.ts'

/**
 * Writes whose results cannot be read again, because other runs change the same value: the result is stored with the
 * run, and returned only to the same write. A write that was rendered differently is another one.
 */
export const storedOnce =
  (host: EffectHost) =>
  async <T>(request: unknown[], write: () => Promise<T>): Promise<T> => {
    const written = createHash('sha256').update(JSON.stringify(request)).digest('base64url')
    const { result } = await host.once(
      'stored_value',
      async (id, kept) => {
        const before = kept as { written: string; result: T } | null
        return before?.written === written ? { id, ...before } : undefined
      },
      async () => ({ id: uuidv7(), written, result: await write() }),
      ({ id }) => id,
      ({ written, result }) => ({ written, result }),
    )
    return result
  }
