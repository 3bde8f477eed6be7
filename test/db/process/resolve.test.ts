import { deepEqual, equal, rejects } from 'node:assert/strict'
import { createSocket, type Socket } from 'node:dgram'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createResolve, type Resolve } from '../../../db/process/resolve.ts'
import { temporaryFolder } from '../../support/folder.ts'
import { until } from '../../support/until.ts'

const NXDOMAIN = 3
const A = 1
/** More than the system's resolver looks up at once, and few enough for the buffer of a socket. */
const MANY = 60

/** Names with an address; of `…hang.example` nothing is said, and others do not exist. */
const KNOWN: Record<string, string> = {
  'right.example': '192.0.2.1',
  'service.team.cluster.test': '192.0.2.2',
  'short.cluster.test': '192.0.2.3',
}

describe('names', () => {
  let server: Socket
  let resolve: Resolve
  const asked = new Set<string>()

  before(async () => {
    server = createSocket('udp4').on('message', (query, { port, address }) => {
      const { name, end } = nameIn(query)
      asked.add(name)
      if (name.endsWith('hang.example')) return
      const known = KNOWN[name]
      const isWanted = known !== undefined && query.readUInt16BE(end) === A
      const head = Buffer.from(query.subarray(0, 12))
      head.writeUInt16BE(0x8180 | (known === undefined ? NXDOMAIN : 0), 2)
      head.writeUInt16BE(isWanted ? 1 : 0, 6)
      head.writeUInt32BE(0, 8)
      const answer = isWanted
        ? Buffer.from([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, ...known.split('.').map(Number)])
        : Buffer.alloc(0)
      server.send(Buffer.concat([head, query.subarray(12, end + 4), answer]), port, address)
    })
    await new Promise<void>((done) => server.bind(0, '127.0.0.1', done))
    const folder = temporaryFolder()
    const [hostsFile, configFile] = [join(folder, 'hosts'), join(folder, 'resolv.conf')]
    writeFileSync(hostsFile, '10.1.2.3 db db.internal # the database\n::5 db\n\n# 10.9.9.9 right.example\n')
    writeFileSync(configFile, 'nameserver 192.0.2.53\nsearch cluster.test\n')
    resolve = createResolve({ servers: [`127.0.0.1:${server.address().port}`], hostsFile, configFile })
  })
  after(() => new Promise<void>((done) => server.close(done)))

  it('are resolved although those of many servers get no answer', async () => {
    let open = 0
    const hanging = Array.from({ length: MANY }, async (_, n) => {
      open++
      await rejects(resolve(`n${n}.hang.example`), { code: 'EAI_AGAIN' })
      open--
    })
    await until(() => [...asked].filter((name) => name.endsWith('hang.example')).length === MANY)
    deepEqual(await resolve('right.example'), [{ address: '192.0.2.1', family: 4 }])
    equal(open, MANY)
    await Promise.all(hanging)
  }).timeout(60_000)

  it('are those of the hosts file and of the machine before those of DNS', async () => {
    deepEqual(await resolve('DB.'), [
      { address: '10.1.2.3', family: 4 },
      { address: '::5', family: 6 },
    ])
    deepEqual(await resolve('db.internal'), [{ address: '10.1.2.3', family: 4 }])
    for (const name of ['localhost', 'a.localhost'])
      deepEqual(
        (await resolve(name)).map(({ address }) => address),
        ['127.0.0.1'],
      )
    equal(asked.has('localhost'), false)
  })

  it('are looked for in the search domains too', async () => {
    deepEqual(await resolve('short'), [{ address: '192.0.2.3', family: 4 }])
    deepEqual(await resolve('service.team'), [{ address: '192.0.2.2', family: 4 }])
    await rejects(resolve('nowhere.example'), { code: 'ENOTFOUND' })
    await rejects(resolve('short.'), { code: 'ENOTFOUND' })
  })
})

/** The name of the question, and where it ends. */
function nameIn(query: Buffer): { name: string; end: number } {
  const labels: string[] = []
  let at = 12
  while (query[at] !== 0) {
    const length = query[at]!
    labels.push(query.subarray(at + 1, at + 1 + length).toString('latin1'))
    at += 1 + length
  }
  return { name: labels.join('.').toLowerCase(), end: at + 1 }
}
