/** The workflow types: the entry of the bundle, which may not import zod, yaml, LiquidJS or Node modules. */
export { deliver } from './deliver.ts'
export { embedPassages, exportRecords, importRecords } from './files.ts'
export { fire } from './fire.ts'
export { run } from './run.ts'
export { testNode } from './test-node.ts'
export { witness } from './witness.ts'
