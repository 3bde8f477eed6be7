import { spawnSync } from 'node:child_process'
import {
  createReadStream,
  createWriteStream,
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { fileURLToPath } from 'node:url'
import { createBrotliDecompress } from 'node:zlib'
import { type Browser, chromium } from 'playwright-core'

const PACKAGE = join(dirname(createRequire(import.meta.url).resolve('@sparticuz/chromium')), '../..')
const CACHE = fileURLToPath(new URL('../../node_modules/.cache/', import.meta.url))

/**
 * Starts Chromium: that of CHROMIUM_PATH, else that of the package @sparticuz/chromium (Linux on x64), with the libraries
 * and the font that it brings, so that it needs none of the system. Throws with what to do if it does not start.
 */
export async function startBrowser(): Promise<Browser> {
  const own = process.env.CHROMIUM_PATH
  try {
    const folder = own ? undefined : await unpacked()
    return await chromium.launch({
      executablePath: own ?? join(folder!, 'chromium'),
      // Root has no sandbox. The package's own flags would switch off what is tested here, such as the web's security.
      args: ['--no-sandbox', '--disable-gpu'],
      ...(folder && { env: { ...process.env, LD_LIBRARY_PATH: join(folder, 'lib'), ...fontsOf(folder) } }),
    })
  } catch (error) {
    throw new Error(`no browser could be started: set CHROMIUM_PATH to a Chromium (${error})`)
  }
}

/** The folder with what the package contains, unpacked: 210 MB, once (2 s). The package itself unpacks to /tmp. */
async function unpacked(): Promise<string> {
  const { version } = JSON.parse(readFileSync(join(PACKAGE, 'package.json'), 'utf8')) as { version: string }
  const folder = join(CACHE, `chromium-${version}`)
  if (existsSync(folder)) return folder
  const temporary = `${folder}.${process.pid}`
  mkdirSync(temporary, { recursive: true })
  await decompress('chromium', join(temporary, 'chromium'))
  for (const name of ['al2023.tar', 'fonts.tar']) {
    const archive = join(temporary, name)
    await decompress(name, archive)
    const { status, stderr } = spawnSync('tar', ['-xf', archive, '-C', temporary], { encoding: 'utf8' })
    if (status !== 0) throw new Error(`tar failed: ${stderr}`)
    rmSync(archive)
  }
  const fonts = join(temporary, 'fonts.conf')
  writeFileSync(fonts, readFileSync(fonts, 'utf8').replace('/tmp/fonts<', `${join(folder, 'fonts')}<`))
  try {
    renameSync(temporary, folder)
  } catch (error) {
    // Another process may have been faster.
    rmSync(temporary, { recursive: true })
    if (!existsSync(folder)) throw error
  }
  return folder
}

const decompress = (name: string, to: string) =>
  pipeline(
    createReadStream(join(PACKAGE, 'bin', `${name}.br`)),
    createBrotliDecompress(),
    createWriteStream(to, { mode: 0o755 }),
  )

/** A slim image has no fonts. */
const fontsOf = (folder: string) => (existsSync('/etc/fonts/fonts.conf') ? {} : { FONTCONFIG_PATH: folder })
