import { cpSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { DELIVER_ENGINE } from '../../workflows/bundle/deliver.ts'
import { RUN_WORKFLOW_VERSION } from '../../workflows/bundle/protocol.ts'
import { ENGINE } from '../../workflows/nodes/engine.ts'
import { temporaryFolder } from './folder.ts'

const ROOT = fileURLToPath(new URL('../../', import.meta.url))
/** The sources of a worker process. */
const SOURCES = ['package.json', 'tsconfig.json', 'activities', 'db', 'worker', 'workflows']

/** The node type that the next version adds, and the engine that programs with it need. */
export const NEXT = { engine: ENGINE + 1, nodeType: 'set_fields_next' }

/** A change of one file; the first match is replaced. */
type Patch = [file: string, find: RegExp, replacement: string]

/**
 * The changes of the next version. Both workflows issue a command that the current code does not know, but only in
 * executions that the next version has started: so must every change of a workflow be made.
 */
const PATCHES: Patch[] = [
  [
    'workflows/nodes/index.ts',
    /^ {2}setFields,$/m,
    `  setFields, { ...setFields, type: '${NEXT.nodeType}', engine: () => ${NEXT.engine}, engines: [${NEXT.engine}] },`,
  ],
  [
    'workflows/bundle/protocol.ts',
    /RUN_WORKFLOW_VERSION = \d+/,
    `RUN_WORKFLOW_VERSION = ${RUN_WORKFLOW_VERSION + 1}`,
  ],
  [
    'workflows/bundle/run.ts',
    /=> (new RunLoop\(.*\)\.perform\(\))\)/,
    `=> input.engine > ${RUN_WORKFLOW_VERSION} ? sleep(1).then(() => $1) : $1)`,
  ],
  ['workflows/bundle/deliver.ts', /DELIVER_ENGINE = \d+/, `DELIVER_ENGINE = ${DELIVER_ENGINE + 1}`],
  ['workflows/bundle/deliver.ts', /^ {2}setHandler,$/m, '  setHandler, sleep,'],
  [
    'workflows/bundle/deliver.ts',
    /^ {2}if \(!input\.failing\) \{$/m,
    `  if ((input.engine ?? 0) > ${DELIVER_ENGINE}) await sleep(1)\n$&`,
  ],
]

/**
 * Writes the next version of this project into a temporary folder: these sources with one more node type, which needs
 * the next engine, and changed workflows. Not an earlier commit: a checkout may have no history, and one may have
 * another schema. For the worker of this version, the next one is what this one is for an older worker.
 *
 * @returns the folder, for `startProcess`. Throws where a change does not apply: adapt PATCHES to the sources.
 */
export function writeNextVersion(): string {
  const folder = temporaryFolder()
  for (const name of SOURCES) cpSync(join(ROOT, name), join(folder, name), { recursive: true })
  symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'))
  for (const [file, find, replacement] of PATCHES) {
    const path = join(folder, file)
    const source = readFileSync(path, 'utf8')
    if (!find.test(source)) throw new Error(`${find} does not match ${file}: adapt ${import.meta.filename}`)
    writeFileSync(path, source.replace(find, replacement))
  }
  return folder
}
