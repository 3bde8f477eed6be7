import { inflateRawSync } from 'node:zlib'
import { KNOWLEDGE } from '../../../../workflows/shared/limits.ts'
import type { Extracted } from './extracted.ts'

/** The text of a Word document as HTML, whose headings divide it. Images are left out. */
export async function extractDocx(bytes: Uint8Array): Promise<Extracted> {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const problem = problemOfZip(buffer)
  if (problem) return { refused: problem }
  // Loaded here: only a thread that reads such a file needs it.
  const { default: mammoth } = await import('mammoth')
  try {
    const { value } = await mammoth.convertToHtml(
      { buffer },
      { convertImage: mammoth.images.imgElement(async () => ({ src: '' })), externalFileAccess: false },
    )
    const body = value.replaceAll(/<img[^>]*>/g, '')
    if (body.trim() === '') return { refused: 'the document has no text' }
    return { body, format: 'html' }
  } catch {
    return { refused: 'the file is no Word document (.docx) that can be read' }
  }
}

const END = 0x06054b50
const ENTRY = 0x02014b50
const LOCAL = 0x04034b50
const MOST_ENTRIES = 5_000

/**
 * Why a zip archive is not given to the library, which would decompress all of it into memory: its parts are larger
 * than what they say, or too large together. Decompresses each with a limit, and keeps none.
 */
export function problemOfZip(file: Buffer): string | undefined {
  const end = file.lastIndexOf(Buffer.from([0x50, 0x4b, 5, 6]))
  if (end < 0 || end + 22 > file.length || file.readUInt32LE(end) !== END)
    return OLE.equals(file.subarray(0, 8))
      ? 'the file is an encrypted or old Word document: save it as .docx without a password'
      : 'the file is no Word document (.docx): it is not a zip archive'
  const count = file.readUInt16LE(end + 10)
  if (count > MOST_ENTRIES) return `the archive has ${count} parts, of at most ${MOST_ENTRIES}`
  let left: number = KNOWLEDGE.inflatedBytes
  try {
    let at = file.readUInt32LE(end + 16)
    for (let i = 0; i < count; i++) {
      if (file.readUInt32LE(at) !== ENTRY) return BROKEN
      if (file.readUInt16LE(at + 8) & 1) return 'the archive is encrypted: remove its password first'
      const method = file.readUInt16LE(at + 10)
      const packed = file.readUInt32LE(at + 20)
      const local = file.readUInt32LE(at + 42)
      if (file.readUInt32LE(local) !== LOCAL) return BROKEN
      const from = local + 30 + file.readUInt16LE(local + 26) + file.readUInt16LE(local + 28)
      const content = file.subarray(from, from + packed)
      left -= method === 8 ? inflateRawSync(content, { maxOutputLength: left + 1 }).length : content.length
      if (left < 0) return TOO_LARGE
      at += 46 + file.readUInt16LE(at + 28) + file.readUInt16LE(at + 30) + file.readUInt16LE(at + 32)
    }
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE' ? TOO_LARGE : BROKEN
  }
  return undefined
}

/** The start of the files that Word wrote before .docx, and of encrypted ones. */
const OLE = Buffer.from('d0cf11e0a1b11ae1', 'hex')
const BROKEN = 'the file is no Word document (.docx): its archive is damaged'
const TOO_LARGE = `the archive has more than ${KNOWLEDGE.inflatedBytes} bytes when it is decompressed`
