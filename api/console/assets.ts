import { readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import type Koa from 'koa'
import { type StaticAnswer, staticAnswer } from '../http/static-answer.ts'

const FOLDER = fileURLToPath(new URL('./assets/', import.meta.url))

/** The addresses of the assets, which contain the hashes of their contents. */
export interface AssetPaths {
  style: string
  script: string
  icons: string
}

export interface Assets {
  paths: AssetPaths
  /** The asset of a path, if any. */
  at(path: string): { send(ctx: Koa.Context): void } | undefined
}

export const ASSETS = '/assets/'

/** The folder of the bundles that `worker/run.mjs` made with the service; not defined where tsx loads the sources. */
declare const COMPILED_ASSETS: string | undefined

/** The content of an asset: `console.css`, `console.js`. */
async function bundled(): Promise<(name: string) => Promise<Buffer>> {
  if (typeof COMPILED_ASSETS === 'string') return (name) => readFile(`${COMPILED_ASSETS}/${name}`)
  const { build, stop } = await import('esbuild')
  const { outputFiles } = await build({
    entryPoints: [`${FOLDER}console.ts`, `${FOLDER}console.css`],
    outdir: FOLDER,
    bundle: true,
    minify: true,
    write: false,
    target: 'es2022',
    logLevel: 'silent',
  })
  // Else its child process would stay.
  await stop()
  return async (name) => Buffer.from(outputFiles.find(({ path }) => path.endsWith(name))!.contents)
}

/** Reads and compresses the style sheet, the script and the icons of the console. */
export async function readAssets(): Promise<Assets> {
  const content = await bundled()
  const style = await staticAnswer(await content('console.css'), { type: 'text/css', immutable: true })
  const script = await staticAnswer(await content('console.js'), { type: 'text/javascript', immutable: true })
  const icons = await staticAnswer(await readFile(`${FOLDER}icons.svg`), {
    type: 'image/svg+xml',
    immutable: true,
  })
  const paths = {
    style: `${ASSETS}console-${style.hash}.css`,
    script: `${ASSETS}console-${script.hash}.js`,
    icons: `${ASSETS}icons-${icons.hash}.svg`,
  }
  const byPath = new Map<string, StaticAnswer>([
    [paths.style, style],
    [paths.script, script],
    [paths.icons, icons],
  ])
  return { paths, at: (path) => byPath.get(path) }
}
