import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { NativeConnection } from '@temporalio/worker'
import { createLogger } from '../../db/process/log.ts'
import { temporalProfile } from '../../db/process/temporal-profile.ts'
import { watchCredentials } from '../../worker/temporal-credentials.ts'
import { temporaryFolder } from '../support/folder.ts'
import { startHeaderProxy } from '../support/header-proxy.ts'
import { until } from '../support/until.ts'

const LOOK_MS = 20

describe('credentials of Temporal that are replaced in their files', () => {
  const stopping = new AbortController()
  const lines: string[] = []
  const log = createLogger('worker', 'info', { write: (line: string) => void lines.push(line) })
  let folder: string
  let proxy: Awaited<ReturnType<typeof startHeaderProxy>>
  let connection: NativeConnection | undefined
  before(async () => {
    folder = temporaryFolder()
    proxy = await startHeaderProxy(process.env.TEST_TEMPORAL_ADDRESS!, 'authorization')
  })
  after(async () => {
    stopping.abort()
    await connection?.close()
    proxy?.close()
  })

  /** The profile as an operator writes it; the proxy speaks no TLS. */
  const write = (apiKey: string, tls = 'disabled = true') => {
    const file = join(folder, 'temporal.toml')
    const profile = `[profile.default]\naddress = "${proxy.address}"\napi_key = "${apiKey}"\n[profile.default.tls]\n${tls}\n`
    writeFileSync(file, profile)
    return file
  }

  it('are used without a restart: the API key on the same connection, certificates on a new one', async () => {
    const TEMPORAL_CONFIG_FILE = write('planted-first-key')
    const load = () => temporalProfile({ TEMPORAL_CONFIG_FILE }).connectionOptions
    const used = load()
    connection = await NativeConnection.connect(used)
    const ask = () => connection!.workflowService.getSystemInfo({})
    await ask()
    assert.equal(proxy.seen.at(-1), 'Bearer planted-first-key')
    let ended = false
    const watching = watchCredentials({
      connection,
      used,
      load,
      log,
      stopping: stopping.signal,
      lookMs: LOOK_MS,
    }).then(() => {
      ended = true
    })
    write('planted-second-key')
    await until(async () => {
      await ask()
      return proxy.seen.at(-1) === 'Bearer planted-second-key'
    }, 'the new key')
    assert.equal(ended, false)

    // A file that is not there for a moment, and certificates that follow one after the other.
    const [certificate, key] = [join(folder, 'client.pem'), join(folder, 'client.key')]
    const files = `client_cert_path = "${certificate}"\nclient_key_path = "${key}"`
    write('planted-second-key', files)
    await until(async () => lines.some((line) => /could not be read again/.test(line)), 'the warning')
    assert.equal(ended, false)
    writeFileSync(certificate, 'certificate')
    writeFileSync(key, 'key')
    await watching
    assert.ok(!lines.some((line) => line.includes('planted-')), 'no key is logged')
  })
})
