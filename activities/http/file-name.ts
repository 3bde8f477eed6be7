import { toFileName } from '../../workflows/shared/files.ts'

/** The name of a response's file: that of its Content-Disposition, else the last part of the URL's path. */
export function fileNameOf(url: string, headers: Record<string, string>): string {
  const disposition = headers['content-disposition'] ?? ''
  const extended = /;\s*filename\*\s*=\s*utf-8''([^;\s]+)/i.exec(disposition)?.[1]
  const quoted = /;\s*filename\s*=\s*"((?:[^"\\]|\\.)*)"/i.exec(disposition)?.[1]?.replace(/\\(.)/g, '$1')
  const plain = /;\s*filename\s*=\s*([^";\s]+)/i.exec(disposition)?.[1]
  const inPath = new URL(url).pathname.split('/').at(-1)
  const names = [
    decoded(extended),
    utf8(quoted ?? plain)
      ?.split(/[/\\]/)
      .at(-1),
    decoded(inPath),
  ]
  for (const name of names) {
    const safe = name && toFileName(name)
    if (safe) return safe
  }
  return 'file'
}

/** Undefined if the percent-encoding is not UTF-8. */
function decoded(text: string | undefined): string | undefined {
  try {
    return text === undefined ? undefined : decodeURIComponent(text)
  } catch {
    return undefined
  }
}

/** Headers arrive as Latin-1; many servers send UTF-8. */
function utf8(text: string | undefined): string | undefined {
  if (text === undefined) return undefined
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(Buffer.from(text, 'latin1'))
  } catch {
    return text
  }
}
