import { randomUUID } from 'node:crypto'
import { constants, createWriteStream } from 'node:fs'
import { mkdir, open, rename, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { ConfigError } from '../../model/config-error.ts'
import type { FileStorage } from './storage.ts'

/** Files in a folder that every api and worker can reach. */
export function diskStorage(folder: string): FileStorage {
  const pathOf = (key: string) => join(folder, key)
  const storage: FileStorage = {
    async write(key, content) {
      const path = pathOf(key)
      const made = await mkdir(dirname(path), { recursive: true, mode: 0o700 })
      // `delete` finds the part of a writer that was killed, because its name is known.
      await pipeline(
        Readable.from(content),
        createWriteStream(partOf(path), { mode: 0o600, flush: true }),
      ).catch(async (error: unknown) => {
        await rm(partOf(path), { force: true }).catch(() => {})
        throw error
      })
      await rename(partOf(path), path)
      await syncFolders(dirname(path), made === undefined ? dirname(path) : dirname(made))
    },
    async read(key) {
      const file = await open(pathOf(key)).catch((error: NodeJS.ErrnoException) => {
        if (error.code === 'ENOENT') return undefined
        throw error
      })
      return file?.createReadStream({ highWaterMark: READ_BYTES })
    },
    async delete(key) {
      await rm(pathOf(key), { force: true })
      await rm(partOf(pathOf(key)), { force: true })
    },
    async check() {
      const key = `check/${randomUUID()}`
      try {
        await storage.write(key, oneByte())
        await storage.delete(key)
      } catch (error) {
        const { code = '', message } = error as NodeJS.ErrnoException
        if (PASSING.has(code)) throw error
        throw new ConfigError(`FILES_DIR ${folder} cannot be used: ${code || message}`)
      }
    },
  }
  return storage
}

const READ_BYTES = 262_144
/** A full disk, or one with an error, is no wrong setting. */
const PASSING = new Set(['ENOSPC', 'EDQUOT', 'EIO', 'ESTALE', 'EMFILE', 'ENFILE'])

const partOf = (path: string) => `${path}.part`

/** A new file survives a loss of power once the folders that name it are written: from its own up to `last`. */
async function syncFolders(path: string, last: string): Promise<void> {
  const folder = await open(path, constants.O_RDONLY)
  try {
    await folder.sync()
  } finally {
    await folder.close()
  }
  if (path !== last) await syncFolders(dirname(path), last)
}

async function* oneByte() {
  yield Buffer.from('1')
}
