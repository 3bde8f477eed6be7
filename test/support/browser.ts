import chromium from '@sparticuz/chromium'
import { type Browser, chromium as launcher } from 'playwright-core'

/**
 * Starts Chromium: that of CHROMIUM_PATH, else the one that the package @sparticuz/chromium unpacks (Linux on x64).
 * Throws with what to do if there is none.
 */
export async function startBrowser(): Promise<Browser> {
  const own = process.env.CHROMIUM_PATH
  try {
    return await launcher.launch({
      executablePath: own ?? (await chromium.executablePath()),
      // With --single-process the whole browser ends with its first page.
      args: own ? [] : chromium.args.filter((flag) => !['--single-process', '--no-zygote'].includes(flag)),
    })
  } catch (error) {
    throw new Error(`no browser could be started: set CHROMIUM_PATH to a Chromium (${error})`)
  }
}
