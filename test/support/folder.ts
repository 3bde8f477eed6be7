import { chmodSync, mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** A folder that the PostgreSQL of a test may lie in: root hands PostgreSQL to another user, who must get there. */
export function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'agx-test-'))
  chmodSync(folder, 0o755)
  return folder
}
