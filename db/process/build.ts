import { readFileSync } from 'node:fs'

const PACKAGE = new URL('../../package.json', import.meta.url)

/** The version of the service, by semantic versioning. */
export const VERSION: string = JSON.parse(readFileSync(PACKAGE, 'utf8')).version

/** What runs: in logs, metrics and /healthz. `commit`: absent where the image does not name it. */
export interface Build {
  version: string
  commit?: string
}

export const buildOf = ({ BUILD_COMMIT }: { BUILD_COMMIT?: string | undefined }): Build => ({
  version: VERSION,
  ...(BUILD_COMMIT !== undefined && { commit: BUILD_COMMIT }),
})
