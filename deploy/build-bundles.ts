import { workflowBundle } from '../worker/bundle.ts'
import { ENCODED_FAILURES } from '../worker/data-converter.ts'

/**
 * `node --import tsx deploy/build-bundles.ts <data dir>`: builds both bundles of the Temporal workflows, for an image.
 */
const [, , dataDir] = process.argv
if (!dataDir) throw new Error('usage: node --import tsx deploy/build-bundles.ts <data dir>')
await workflowBundle(dataDir)
await workflowBundle(dataDir, { failureConverterPath: ENCODED_FAILURES })
