import { createSocket, type Socket } from 'node:dgram'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'

/**
 * A DNS server on UDP that knows the IPv4 addresses of `names`, and never answers a question for a name that contains
 * `hang`; any other name does not exist.
 */
export async function startDns(names: Record<string, string>, port = 0) {
  const asked: string[] = []
  const socket: Socket = createSocket('udp4')
  socket.on('message', (question, from) => {
    const { name, type, end } = readQuestion(question)
    asked.push(name)
    if (name.includes('hang')) return
    const address = names[name]
    const answers = address !== undefined && type === 1 ? [address] : []
    const head = Buffer.from(question.subarray(0, 12))
    head.writeUInt16BE(address === undefined ? 0x8183 : 0x8180, 2)
    head.writeUInt16BE(answers.length, 6)
    head.fill(0, 8, 12)
    // The name by a pointer, type A, class IN, 0 s, four bytes.
    const records = answers.map((one) =>
      Buffer.from([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4, ...one.split('.').map(Number)]),
    )
    socket.send(Buffer.concat([head, question.subarray(12, end), ...records]), from.port, from.address)
  })
  socket.bind(port, '127.0.0.1')
  await once(socket, 'listening')
  return {
    asked,
    server: `127.0.0.1:${(socket.address() as AddressInfo).port}`,
    close: () => socket.close(),
  }
}

function readQuestion(message: Buffer): { name: string; type: number; end: number } {
  const labels: string[] = []
  let at = 12
  for (let length = message[at]!; length > 0; length = message[at]!) {
    labels.push(message.toString('latin1', at + 1, at + 1 + length))
    at += length + 1
  }
  return { name: labels.join('.').toLowerCase(), type: message.readUInt16BE(at + 1), end: at + 5 }
}
