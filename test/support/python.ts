import { execFile } from 'node:child_process'
import { existsSync, mkdtempSync, renameSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'

const run = promisify(execFile)

/**
 * The Python of a virtual environment with one package (`name==version`), in the temporary folder, where the next call
 * finds it. Call modules by `-m`: the programs of the package contain the path of another folder. Throws without
 * python3, venv or PyPI.
 */
export async function pythonWith(requirement: string): Promise<string> {
  const venv = join(tmpdir(), `agx-${requirement}`)
  const python = join(venv, 'bin', 'python')
  if (existsSync(venv)) return python
  const made = mkdtempSync(join(tmpdir(), 'agx-venv-'))
  try {
    await run('python3', ['-m', 'venv', made])
    const quiet = ['--quiet', '--disable-pip-version-check', '--retries', '1', '--timeout', '10']
    await run(join(made, 'bin', 'python'), ['-m', 'pip', 'install', ...quiet, requirement])
    renameSync(made, venv)
  } catch (error) {
    rmSync(made, { recursive: true, force: true })
    // Another process may have created it.
    if (!existsSync(venv)) throw error
  }
  return python
}
