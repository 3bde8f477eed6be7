import { fstatSync, write, writeSync } from 'node:fs'
import { Socket } from 'node:net'

/** The size of the lines that may wait for the write before them. */
const MAX_PENDING_BYTES = 1_000_000

/** Lines are gathered for so long before a write. A process that is killed loses them. */
const GATHER_MS = 10

/**
 * Where log lines go: a file descriptor that may block or fail, such as a pipe without a reader or a file on a full disk.
 * Work never waits for it: lines are written in the background, one write at a time. A line is dropped and counted when
 * too much is pending, or when its write fails.
 *
 * Not `pino.destination` (sonic-boom 4.2): its writes to a blocking pipe occupy a thread of libuv, and to a full
 * non-blocking one are tried again only after 100 ms. Bursts of 6 MB/s to a pipe that was read lost up to 38 % of their
 * lines, here none. When the reader of a pipe is gone it discards all further lines uncounted.
 */
export class LogOutput {
  /** Lines that were not written. */
  dropped = 0
  /** Called with the number of dropped lines once a write succeeds again. */
  onRecovered: (dropped: number) => void = () => {}
  private readonly fd: number
  private readonly send: (text: string, done: (error: Error | null, written: number) => void) => void
  private pending: string[] = []
  private pendingBytes = 0
  private writing = false
  /** Runs while lines are gathered for the next write. */
  private timer: NodeJS.Timeout | undefined
  private used = false
  /** The last line is incomplete: its rest could not be written. */
  private torn = false
  private reported = 0
  private flushed: (() => void)[] = []

  constructor(fd: number) {
    this.fd = fd
    this.send = isPipe(fd) ? toPipe(fd) : toFile(fd)
  }

  write(line: string): void {
    if (!this.used) process.once('exit', () => this.writeRest())
    this.used = true
    if (this.pendingBytes + line.length > MAX_PENDING_BYTES) {
      this.dropped++
      return
    }
    this.pending.push(line)
    this.pendingBytes += line.length
    if (!this.writing) this.soon()
  }

  /** Writes after a moment: each write costs as much as an answer does, and one takes many lines. */
  private soon(): void {
    this.timer ??= setTimeout(() => this.next(), GATHER_MS).unref()
  }

  /** Calls back when everything is written or dropped; never, while the descriptor blocks. */
  flush(done: () => void): void {
    this.flushed.push(done)
    if (!this.writing) this.next()
  }

  private next(): void {
    clearTimeout(this.timer)
    this.timer = undefined
    const lines = this.pending
    this.pending = []
    this.pendingBytes = 0
    this.writing = lines.length > 0
    if (!this.writing) {
      for (const done of this.flushed.splice(0)) done()
      return
    }
    const text = (this.torn ? '\n' : '') + lines.join('')
    this.send(text, (error, written) => {
      if (error) {
        this.dropped += lines.length
        this.torn ||= written > 0
      } else {
        this.torn = false
        this.report()
      }
      this.writing = false
      if (this.pending.length === 0 || this.flushed.length > 0) this.next()
      else this.soon()
    })
  }

  private report(): void {
    const dropped = this.dropped - this.reported
    this.reported = this.dropped
    if (dropped > 0) this.onRecovered(dropped)
  }

  /** At the exit of the process: what a pipe cannot take at once is lost, a file takes everything. */
  private writeRest(): void {
    if (this.writing && isPipe(this.fd)) return
    try {
      writeSync(this.fd, this.pending.join(''))
    } catch {}
  }
}

function isPipe(fd: number): boolean {
  const stat = fstatSync(fd)
  return stat.isFIFO() || stat.isSocket()
}

/** A pipe is made non-blocking, or the write would block a thread, and with it the exit of the process. */
function toPipe(fd: number): LogOutput['send'] {
  const stream = fd === 1 ? process.stdout : new Socket({ fd, readable: false, writable: true })
  // Each write reports its own error.
  stream.on('error', () => {})
  return (text, done) => stream.write(text, (error) => done(error ?? null, 0))
}

function toFile(fd: number): LogOutput['send'] {
  return (text, done) => writeAll(fd, Buffer.from(text), 0, done)
}

function writeAll(
  fd: number,
  bytes: Buffer,
  from: number,
  done: (error: Error | null, written: number) => void,
): void {
  write(fd, bytes, from, (error, written) => {
    if (error) done(error, from)
    else if (from + written < bytes.length) writeAll(fd, bytes, from + written, done)
    else done(null, bytes.length)
  })
}
