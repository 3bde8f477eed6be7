import chromium from '@sparticuz/chromium'
import { type Browser, chromium as launcher } from 'playwright-core'

/**
 * Starts Chromium: that of CHROMIUM_PATH, else the one that the package @sparticuz/chromium unpacks (Linux on x64).
 * Throws with what to do if there is none.
 */
export async function startBrowser(): Promise<Browser> {
  try {
    return await launcher.launch({
      executablePath: process.env.CHROMIUM_PATH ?? (await chromium.executablePath()),
      // The package's own flags would switch off what is tested here, such as the web's security. Root has no sandbox.
      args: ['--no-sandbox', '--disable-gpu'],
    })
  } catch (error) {
    throw new Error(`no browser could be started: set CHROMIUM_PATH to a Chromium (${error})`)
  }
}
