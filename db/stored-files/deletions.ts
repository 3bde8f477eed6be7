import type { System } from '../postgres/tenancy.ts'
import { defineQueue } from '../queue/queue.ts'

/** A file whose row is deleted: its content is to be deleted. */
export interface DeletedFile {
  organization_id: string
  id: string
}

/** The contents to delete. A trigger adds each deleted row of `files`, so that no way of deleting one forgets it. */
export const deletedFiles = defineQueue<DeletedFile>({
  table: 'deleted_files',
  key: ['organization_id', 'id'],
  waits: 'true',
  order: 'deleted_at',
  // A storage that is away is asked again after this time.
  seconds: 60,
})

/** The content is deleted. */
export async function forgetDeleted(system: System, { organization_id, id }: DeletedFile): Promise<void> {
  await system('deleted_files').where({ organization_id, id }).delete()
}
