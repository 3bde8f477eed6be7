import type { DocumentFormat } from '../../../../workflows/shared/knowledge.ts'
import { KNOWLEDGE } from '../../../../workflows/shared/limits.ts'
import { extractDocx } from './docx.ts'
import type { Extracted } from './extracted.ts'
import { extractPdf } from './pdf.ts'

/** The media types of files that documents are made of. */
export const FILE_TYPES = {
  'application/pdf': extractPdf,
  'application/vnd.openxmlformats-officedocument.wordprocessingml.document': extractDocx,
  'text/markdown': textOf('markdown'),
  'text/html': textOf('html'),
  'application/xhtml+xml': textOf('html'),
  'text/plain': textOf('text'),
} as const satisfies Record<string, (bytes: Uint8Array) => Promise<Extracted> | Extracted>

export type FileType = keyof typeof FILE_TYPES
export const isFileType = (type: string): type is FileType => Object.hasOwn(FILE_TYPES, type)

const EXTENSIONS: Record<string, FileType> = {
  pdf: 'application/pdf',
  docx: 'application/vnd.openxmlformats-officedocument.wordprocessingml.document',
  md: 'text/markdown',
  markdown: 'text/markdown',
  html: 'text/html',
  htm: 'text/html',
  txt: 'text/plain',
}

/** The type that the name of a file tells. */
export const typeOfName = (name: string): FileType | undefined =>
  EXTENSIONS[name.toLowerCase().split('.').at(-1) ?? '']

/** Extracts the text of a file. For a thread: its time and memory depend on the file. */
export async function extract(bytes: Uint8Array, type: FileType): Promise<Extracted> {
  const extracted = await FILE_TYPES[type](bytes)
  if ('refused' in extracted) return extracted
  if (extracted.body.trim() === '') return { refused: 'the file has no text' }
  if (Buffer.byteLength(extracted.body) > KNOWLEDGE.bytes)
    return { refused: `the text has more than ${KNOWLEDGE.bytes} bytes: split the file into several` }
  return extracted
}

function textOf(format: DocumentFormat): (bytes: Uint8Array) => Extracted {
  return (bytes) => {
    try {
      return { body: new TextDecoder('utf-8', { fatal: true }).decode(bytes), format }
    } catch {
      return { refused: 'the text is not UTF-8' }
    }
  }
}
