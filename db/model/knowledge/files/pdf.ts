import { KNOWLEDGE } from '../../../../workflows/shared/limits.ts'
import type { Extracted } from './extracted.ts'

/** Bytes of one stream of a PDF, decompressed. */
const MOST_STREAM = 16_000_000

/** The text of a PDF, a paragraph for each page. A file of images only has none. */
export async function extractPdf(bytes: Uint8Array): Promise<Extracted> {
  // Loaded here: only a thread that reads a PDF needs it.
  const { getDocumentProxy } = await import('unpdf')
  return bounded(async (allocations) => {
    try {
      const document = await getDocumentProxy(new Uint8Array(bytes), { verbosity: 0 })
      if (document.numPages > KNOWLEDGE.pdfPages)
        return { refused: `the PDF has ${document.numPages} pages, of at most ${KNOWLEDGE.pdfPages}` }
      const pages: string[] = []
      let length = 0
      for (let number = 1; number <= document.numPages; number++) {
        const page = await document.getPage(number)
        const { items } = await page.getTextContent()
        if (allocations.refused) return TOO_LARGE
        const text = items
          .map((item) => ('str' in item ? item.str + (item.hasEOL ? '\n' : '') : ''))
          .join('')
          .trim()
        page.cleanup()
        length += text.length
        if (length > KNOWLEDGE.bytes) return { refused: `the text is longer than ${KNOWLEDGE.bytes} bytes` }
        if (text !== '') pages.push(text)
      }
      const { info } = await document.getMetadata()
      const title = (info as { Title?: unknown }).Title
      if (pages.length === 0)
        return { refused: 'the PDF has no text: it may be a scan, which has images only' }
      return {
        body: pages.join('\n\n'),
        format: 'text',
        title: typeof title === 'string' && title.trim() !== '' ? title.trim() : undefined,
      }
    } catch (error) {
      if (allocations.refused) return TOO_LARGE
      const { name } = error as Error
      return {
        refused:
          name === 'PasswordException'
            ? 'the PDF is encrypted: remove its password first'
            : 'the file is no PDF that can be read',
      }
    }
  })
}

const TOO_LARGE = { refused: `a part of the PDF is larger than ${MOST_STREAM} bytes when it is decompressed` }

/**
 * Bounds what the library allocates: it doubles the array of a stream until all of it is decompressed, so 2 KB became 2
 * GB, which the heap limit of a thread does not count. It creates arrays by the global constructor, which it gets from
 * here; a thread does one task at a time. Tested by knowledge-files.test.ts; package.json pins the version of unpdf.
 */
async function bounded<T>(work: (allocations: { refused: boolean }) => Promise<T>): Promise<T> {
  const allocations = { refused: false }
  const Original = globalThis.Uint8Array
  const Bounded: Uint8ArrayConstructor = new Proxy(Original, {
    construct(target, [size, ...rest], newTarget) {
      if (typeof size === 'number' && size > MOST_STREAM) {
        allocations.refused = true
        throw new RangeError('too large')
      }
      return Reflect.construct(target, [size, ...rest], newTarget === Bounded ? target : newTarget)
    },
  })
  globalThis.Uint8Array = Bounded
  try {
    return await work(allocations)
  } finally {
    globalThis.Uint8Array = Original
  }
}
