import { isAscii, isUtf8 } from 'node:buffer'
import { countLines } from '../../../workflows/shared/csv/lines.ts'
import { AppError } from '../errors.ts'

export const ENCODINGS = ['utf-8', 'utf-16le', 'utf-16be', 'windows-1252'] as const
export type Encoding = (typeof ENCODINGS)[number]

/** Accepted values of `charset` in a Content-Type. Latin-1 is read as Windows-1252, its superset, as in browsers. */
const LABELS = new Map<string, Encoding>([
  ['utf8', 'utf-8'],
  ['us-ascii', 'utf-8'],
  ['utf-16', 'utf-16le'],
  ['iso-8859-1', 'windows-1252'],
  ['latin1', 'windows-1252'],
  ['cp1252', 'windows-1252'],
  ...ENCODINGS.map((encoding) => [encoding, encoding] as const),
])

export const encodingOf = (charset: string): Encoding | undefined => LABELS.get(charset.toLowerCase())

/**
 * Stands in the text for bytes that are not UTF-8: a noncharacter, which Unicode reserves for internal use. A row with
 * it in a mapped cell is refused, also when the file of errors is imported again without a correction.
 */
export const WRONG_BYTE = '\ufdd0'

/**
 * Converts text to UTF-8 without a byte order mark, piece by piece. The chosen encoding counts first, then a byte order
 * mark, then the declared one; without any, text is UTF-8, or Windows-1252 if its first letters are not UTF-8. Bytes
 * that are not UTF-8 become `WRONG_BYTE`.
 */
export class ToUtf8 {
  /** Set after the first piece; final at the end. */
  encoding: Encoding | undefined
  private readonly chosen: Encoding | undefined
  private readonly declared: Encoding | undefined
  private decoder: InstanceType<typeof TextDecoder> | undefined
  private held: Buffer = Buffer.alloc(0)
  private line = 1
  private isGuess = false
  private sawLetters = false
  /** The lines with letters beyond ASCII that are UTF-8, and those that are not. */
  private readonly lines = { utf8: 0, other: 0 }

  constructor({ chosen, declared }: { chosen?: Encoding | undefined; declared?: Encoding | undefined } = {}) {
    this.chosen = chosen
    this.declared = declared
  }

  /** The first piece must contain the whole byte order mark. Throws `invalid_request` with the line. */
  write(piece: Buffer): Buffer {
    if (this.encoding) return this.convert(piece)
    const mark = MARKS.find(({ bytes }) => piece.subarray(0, bytes.length).equals(bytes))
    const known = this.chosen ?? mark?.encoding ?? this.declared ?? guessUtf16(piece)
    this.isGuess = known === undefined
    this.encoding = known ?? 'utf-8'
    if (this.encoding.startsWith('utf-16')) this.decoder = new TextDecoder(this.encoding, { fatal: true })
    return this.convert(mark ? piece.subarray(mark.bytes.length) : piece)
  }

  /** Throws `invalid_request` if most lines are in another encoding than the one that was guessed. */
  end(): Buffer {
    const rest = this.held
    this.held = Buffer.alloc(0)
    if (this.decoder) return this.count(this.decode(undefined))
    const text =
      rest.length === 0 || this.encoding === 'windows-1252' ? fromWindows1252(rest) : this.checked(rest)
    const { utf8, other } = this.lines
    if (this.isGuess && (this.encoding === 'utf-8' ? other > utf8 : utf8 > other)) throw mixed(this.lines)
    return this.count(text)
  }

  private convert(piece: Buffer): Buffer {
    if (this.decoder) return this.count(this.decode(piece))
    const bytes = this.held.length > 0 ? Buffer.concat([this.held, piece]) : piece
    const single = this.encoding === 'windows-1252'
    const complete = single ? bytes.length : completeUntil(bytes)
    this.held = Buffer.from(bytes.subarray(complete))
    const whole = bytes.subarray(0, complete)
    if (this.isGuess) this.tally(whole)
    return this.count(single ? fromWindows1252(whole) : this.checked(whole))
  }

  private checked(bytes: Buffer): Buffer {
    if (isUtf8(bytes)) {
      this.sawLetters ||= !isAscii(bytes)
      return bytes
    }
    if (!this.isGuess || this.sawLetters || !isAscii(bytes.subarray(0, validUntil(bytes)))) {
      this.sawLetters = true
      return marked(bytes)
    }
    this.encoding = 'windows-1252'
    return fromWindows1252(bytes)
  }

  private tally(bytes: Buffer): void {
    if (isAscii(bytes)) return
    for (const line of linesOf(bytes)) if (!isAscii(line)) this.lines[isUtf8(line) ? 'utf8' : 'other']++
  }

  private decode(piece: Buffer | undefined): Buffer {
    try {
      return Buffer.from(piece ? this.decoder!.decode(piece, { stream: true }) : this.decoder!.decode())
    } catch {
      throw undecodable(this.line, 'UTF-16')
    }
  }

  private count(text: Buffer): Buffer {
    this.line += countLines(text)
    return text
  }
}

/** Each with its line feed. */
function* linesOf(bytes: Buffer): Generator<Buffer> {
  for (let at = 0; at < bytes.length; ) {
    const feed = bytes.indexOf(0x0a, at)
    const end = feed < 0 ? bytes.length : feed + 1
    yield bytes.subarray(at, end)
    at = end
  }
}

/** By line, because a replacement character that is in the file must not count as a wrong byte. */
const marked = (bytes: Buffer): Buffer =>
  Buffer.concat(
    [...linesOf(bytes)].map((line) =>
      isUtf8(line) ? line : Buffer.from(line.toString('utf8').replaceAll('\ufffd', WRONG_BYTE)),
    ),
  )

const MARKS: { bytes: Buffer; encoding: Encoding }[] = [
  { bytes: Buffer.from([0xef, 0xbb, 0xbf]), encoding: 'utf-8' },
  { bytes: Buffer.from([0xff, 0xfe]), encoding: 'utf-16le' },
  { bytes: Buffer.from([0xfe, 0xff]), encoding: 'utf-16be' },
]

/** Detects UTF-16 without a byte order mark: in a header of Latin letters every other byte is zero. */
function guessUtf16(piece: Buffer): Encoding | undefined {
  const [a, b, c, d] = piece
  if (a && b === 0 && c && d === 0) return 'utf-16le'
  return a === 0 && b && c === 0 && d ? 'utf-16be' : undefined
}

/** The length without an incomplete character at the end. */
function completeUntil(bytes: Buffer): number {
  for (let back = 1; back <= 3 && back <= bytes.length; back++) {
    const byte = bytes[bytes.length - back]!
    if ((byte & 0xc0) === 0x80) continue
    const needed = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc0 ? 2 : 1
    return needed > back ? bytes.length - back : bytes.length
  }
  return bytes.length
}

/** The length of the longest prefix that is valid UTF-8, by binary search. */
function validUntil(bytes: Buffer): number {
  let valid = 0
  for (let broken = bytes.length; broken - valid > 1; ) {
    const middle = (valid + broken) >> 1
    if (isUtf8(bytes.subarray(0, completeUntil(bytes.subarray(0, middle))))) valid = middle
    else broken = middle
  }
  // An incomplete character at the end is invalid here, because the following bytes do not complete it.
  return completeUntil(bytes.subarray(0, valid))
}

/** Windows-1252 from 0x80 to 0x9F, where it differs from Latin-1. Node's TextDecoder maps these to control characters. */
const HIGH =
  '\u20ac\u0081\u201a\u0192\u201e\u2026\u2020\u2021\u02c6\u2030\u0160\u2039\u0152\u008d\u017d\u008f\u0090\u2018\u2019\u201c\u201d\u2022\u2013\u2014\u02dc\u2122\u0161\u203a\u0153\u009d\u017e\u0178'

/** Converts Windows-1252 to UTF-8. */
export const fromWindows1252 = (bytes: Buffer): Buffer =>
  isAscii(bytes)
    ? bytes
    : Buffer.from(
        bytes.toString('latin1').replace(/[\u0080-\u009f]/g, (byte) => HIGH[byte.charCodeAt(0) - 0x80]!),
      )

const mixed = ({ utf8, other }: { utf8: number; other: number }) =>
  new AppError(
    'invalid_request',
    `the file has two encodings: ${utf8} lines are UTF-8 and ${other} are not`,
    {
      hint: `save the file as "CSV UTF-8", or create the import with the encoding ${utf8 > other ? 'utf-8' : 'windows-1252'}, so that only the other lines are refused or misread`,
    },
  )

const undecodable = (line: number, encoding: string) =>
  new AppError('invalid_request', `line ${line} is not ${encoding}`, {
    hint: 'save the file as "CSV UTF-8", or create the import with the actual encoding, such as windows-1252',
  })
