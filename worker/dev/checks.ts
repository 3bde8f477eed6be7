import { once } from 'node:events'
import { chmodSync, existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { dirname, join } from 'node:path'
import { Connection } from '@temporalio/client'
import { ConfigError } from '../../db/model/config-error.ts'
import { tryConnect } from '../../db/postgres/try-connect.ts'
import { temporalProfile } from '../../db/process/temporal-profile.ts'
import { redactText } from '../../workflows/shared/redact.ts'

const TIMEOUT = 5_000
const GRPC_NOT_FOUND = 5

/** Each check throws ConfigError: one line that names the variable and the remedy. */

export function checkDataDir(folder: string): void {
  const probe = join(folder, `.probe-${process.pid}`)
  try {
    makeFolder(join(folder, 'logs'))
    // Also a folder of an earlier version. Its files contain the data of all tenants, and passwords.
    for (const mine of [folder, join(folder, 'logs')]) chmodSync(mine, 0o700)
    writeFileSync(probe, '')
    rmSync(probe)
  } catch (error) {
    throw new ConfigError(
      `DATA_DIR ${folder} is not writable (${code(error)}): set DATA_DIR to another folder`,
    )
  }
}

/** Level by level: under /proc, mkdir with `recursive` never returns. */
function makeFolder(folder: string): void {
  if (existsSync(folder)) return
  makeFolder(dirname(folder))
  mkdirSync(folder)
}

export async function checkPort(variable: string, port: number, host: string): Promise<void> {
  const server = createServer()
  try {
    server.listen(port, host)
    await once(server, 'listening')
  } catch (error) {
    if (code(error) === 'EADDRINUSE')
      throw new ConfigError(
        `${variable} ${port} is in use by another program: stop it, or set ${variable} to another port`,
      )
    if (code(error) === 'EACCES')
      throw new ConfigError(
        `${variable} ${port} is not permitted for this user: set ${variable} to a port above 1023`,
      )
    throw new ConfigError(
      `HOST ${host} cannot be bound (${code(error)}): set HOST to an address of this machine`,
    )
  } finally {
    server.close()
  }
}

export async function checkDatabase(url: string): Promise<void> {
  await tryConnect(url, TIMEOUT).catch((error) => {
    throw new ConfigError(`DATABASE_URL cannot be used: ${redactText(reason(error))}`)
  })
}

/** Connects with the same TEMPORAL_* variables as every process (address, namespace, TLS, API key). */
export async function checkTemporal(
  env: NodeJS.ProcessEnv,
  address: string,
  namespace: string,
): Promise<void> {
  const connection = await connectToTemporal(env).catch((error) => {
    const advice = 'start it, correct TEMPORAL_ADDRESS, or unset it to start an embedded server'
    throw new ConfigError(`TEMPORAL_ADDRESS ${address} cannot be reached (${reason(error)}): ${advice}`)
  })
  try {
    await connection.workflowService.describeNamespace({ namespace })
  } catch (error) {
    // Credentials that may use a namespace need not be allowed to describe it: only "not found" is certain.
    if (code(error) !== GRPC_NOT_FOUND) return
    throw new ConfigError(
      `TEMPORAL_NAMESPACE ${namespace} does not exist at ${address}: create it with \`temporal operator namespace create\`, or set another`,
    )
  } finally {
    await connection.close()
  }
}

async function connectToTemporal(env: NodeJS.ProcessEnv): Promise<Connection> {
  const { connectionOptions } = temporalProfile(env)
  return Connection.connect({ ...connectionOptions, connectTimeout: TIMEOUT })
}

const code = (error: unknown): unknown => (error as { code?: unknown }).code ?? String(error)

function reason(error: unknown): string {
  // Node tries each address of a host name and reports the failures as one error without a message.
  const first = error instanceof AggregateError ? error.errors[0] : error
  return first instanceof Error ? first.message.split('\n')[0]! : String(first)
}
