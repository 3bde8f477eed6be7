/** The workflow types: all that the bundler sees, so nothing here may reach zod, yaml, LiquidJS or Node. */
export { deliver } from './deliver.ts'
export { exportRecords, importRecords } from './files.ts'
export { run } from './run.ts'
export { testNode } from './test-node.ts'
