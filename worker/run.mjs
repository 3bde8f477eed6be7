import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync } from 'node:fs'
import { createRequire, SourceMap } from 'node:module'
import { dirname, join, resolve } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'

/**
 * `node worker/run.mjs api/main.ts`: runs an entry of the service, compiled with all that it imports. Loaded file by file
 * through tsx, a process takes 3.4 s of CPU time until it begins, and compiled 1.5 s: for so long a killed one is missing.
 * Without an entry it only compiles, for an image. It is JavaScript, because nothing compiles it.
 *
 * What is compiled is kept in node_modules/.cache, by the contents of the sources. Where that cannot be written, and where
 * the sources have an error, tsx loads the entry.
 */
const SELF = fileURLToPath(import.meta.url)
const ROOT = fileURLToPath(new URL('../', import.meta.url))
const CACHE = join(ROOT, 'node_modules/.cache/agx')
const isHere = (name) => existsSync(join(ROOT, name))
const COMMANDS = ['backup', 'mcp', 'migrate', 'ops', 'reseal', 'set-password', 'set-plan', 'set-pools'].map(
  (name) => `worker/commands/${name}.ts`,
)
const ENTRIES = ['api/main.ts', 'worker/main.ts', 'worker/dev/start.ts', ...COMMANDS].filter(isHere)
const FOLDERS = ['activities', 'api', 'db', 'worker', 'workflows'].filter(isHere)
/** What other versions left is kept for a day: their processes may still load a part of it. */
const KEPT_MS = 86_400_000

/** The folder with the compiled entries; undefined if there is none. */
async function compiled() {
  const folder = join(CACHE, fingerprint())
  if (existsSync(folder)) return folder
  try {
    mkdirSync(CACHE, { recursive: true })
    removeOld()
  } catch {
    return undefined
  }
  const temporary = `${folder}.${process.pid}`
  try {
    await compile(temporary, folder)
    renameSync(temporary, folder)
    return folder
  } catch {
    rmSync(temporary, { recursive: true, force: true })
    // Another process may have been faster.
    return existsSync(folder) ? folder : undefined
  }
}

/** `folder`: where `outdir` is moved to. */
async function compile(outdir, folder) {
  const { build } = await import('esbuild')
  const assets = 'console-assets'
  // As `api/console/assets.ts` builds them where nothing is compiled.
  await build({
    absWorkingDir: ROOT,
    entryPoints: ['console.ts', 'console.css'].map((name) => `api/console/assets/${name}`),
    outdir: join(outdir, assets),
    bundle: true,
    minify: true,
    target: 'es2022',
    logLevel: 'silent',
  })
  await build({
    absWorkingDir: ROOT,
    entryPoints: ENTRIES,
    outbase: ROOT,
    outdir,
    outExtension: { '.js': '.mjs' },
    bundle: true,
    packages: 'external',
    // Else what is imported later, if at all, would be loaded at the start.
    splitting: true,
    format: 'esm',
    platform: 'node',
    target: 'node20',
    sourcemap: true,
    sourcesContent: false,
    keepNames: true,
    logLevel: 'silent',
    define: { COMPILED_ASSETS: JSON.stringify(join(folder, assets)) },
    plugins: [ownUrls],
  })
}

/** Modules find the files beside them by `import.meta.url`: it stays that of the source. */
const ownUrls = {
  name: 'own-urls',
  setup(build) {
    build.onLoad({ filter: /\.tsx?$/ }, ({ path }) => {
      const url = JSON.stringify(pathToFileURL(path).href)
      return {
        loader: path.endsWith('x') ? 'tsx' : 'ts',
        contents: readFileSync(path, 'utf8').replaceAll('import.meta.url', url),
      }
    })
  },
}

/** Hashes all that the result depends on; it contains absolute paths. */
function fingerprint() {
  const { version } = createRequire(import.meta.url)('esbuild/package.json')
  const hash = createHash('sha256').update(version).update(ROOT).update(readFileSync(SELF))
  for (const folder of FOLDERS)
    for (const file of readdirSync(join(ROOT, folder), { recursive: true }).sort())
      if (/\.(tsx?|json|css)$/.test(file)) hash.update(file).update(readFileSync(join(ROOT, folder, file)))
  return hash.digest('hex').slice(0, 16)
}

function removeOld() {
  for (const name of readdirSync(CACHE)) {
    const path = join(CACHE, name)
    const { mtimeMs = Number.POSITIVE_INFINITY } = statSync(path, { throwIfNoEntry: false }) ?? {}
    if (mtimeMs < Date.now() - KEPT_MS) rmSync(path, { recursive: true, force: true })
  }
}

/**
 * Has stacks name the sources of what is compiled. Node.js would do it by `process.setSourceMapsEnabled`, but reads the
 * maps of all packages too, and all at the start: a sixth of its CPU time. These are read with the first stack.
 */
function nameSources(folder) {
  const own = pathToFileURL(folder).href
  const maps = new Map()
  const mapOf = (file) => {
    if (!maps.has(file)) maps.set(file, new SourceMap(JSON.parse(readFileSync(`${file}.map`, 'utf8'))))
    return maps.get(file)
  }
  const place = (text, url, line, column) => {
    if (!url.startsWith(own)) return text
    try {
      const file = fileURLToPath(url)
      const { originalSource, originalLine, originalColumn } = mapOf(file).findEntry(line - 1, column - 1)
      return `${resolve(dirname(file), originalSource)}:${originalLine + 1}:${originalColumn + 1}`
    } catch {
      return text
    }
  }
  Error.prepareStackTrace = (error, frames) =>
    headOf(error) +
    frames.map((frame) => `\n    at ${`${frame}`.replace(/(file:[^()]+):(\d+):(\d+)/, place)}`).join('')
}

/** What a stack begins with. */
function headOf(error) {
  try {
    return Error.prototype.toString.call(error)
  } catch {
    return 'Error'
  }
}

const folder = await compiled()
const entry = process.argv[2]
if (entry) {
  if (folder) nameSources(folder)
  else {
    ;(await import('tsx/esm/api')).register()
    process.setSourceMapsEnabled(true)
  }
  // The entry finds its arguments where they are without this file.
  process.argv.splice(1, 1)
  await import(pathToFileURL(folder ? join(folder, entry.replace(/ts$/, 'mjs')) : join(ROOT, entry)).href)
}
