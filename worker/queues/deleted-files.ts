import type { Database } from '../../db/postgres/connect.ts'
import { contentKey, type FileStorage } from '../../db/process/storage/storage.ts'
import { type DeletedFile, deletedFiles, forgetDeleted } from '../../db/stored-files/deletions.ts'
import type { Queue } from '../relay.ts'

/**
 * Deletes the contents of files whose rows are deleted. A content is deleted before its entry, so a worker that dies
 * between the two deletes it again, without effect.
 */
export const deletedFilesQueue = ({
  db,
  storage,
}: {
  db: Database
  storage: FileStorage
}): Queue<DeletedFile> => ({
  name: 'deleted files',
  channel: 'agx_files',
  claim: deletedFiles.claim,
  async start(_client, file) {
    await storage.delete(contentKey(file.organization_id, file.id))
    await forgetDeleted(db.system, file)
  },
})
