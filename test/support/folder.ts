import { chmodSync, mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** A folder for the PostgreSQL of a test. If root runs it, PostgreSQL runs as another user, who needs access. */
export function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'agx-test-'))
  chmodSync(folder, 0o755)
  return folder
}
