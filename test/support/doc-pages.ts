import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

/** The documentation in Markdown, and what runs the commands in it. */

const ROOT = fileURLToPath(new URL('../../', import.meta.url))

/** README.md, SECURITY.md and the pages of docs/, below the root of the project. */
export const docPages = (): string[] => [
  'README.md',
  'SECURITY.md',
  ...readdirSync(`${ROOT}docs`)
    .sort()
    .map((name) => `docs/${name}`),
]

export const readDoc = (page: string): string => readFileSync(ROOT + page, 'utf8')

/** A block of commands, and what the page says that it prints. */
export interface Example {
  commands: string
  /**
   * The `text` block between these commands and the next ones; `…` stands for anything, in a line by itself for lines.
   */
  promised: string | undefined
}

/** The runnable blocks of a page: those in `sh`. Commands that cannot run in a test are in `console`. */
export function examplesOf(markdown: string): Example[] {
  const blocks = [...markdown.matchAll(/^```(\w*)\n([\s\S]*?)^```$/gm)]
  return blocks.flatMap(([, language, commands], at) => {
    if (language !== 'sh') return []
    const [, next, text] = blocks[at + 1] ?? []
    return [{ commands: commands!, promised: next === 'text' ? text : undefined }]
  })
}

/** A block of commands that no test runs. */
export interface Untried {
  commands: string
  /** What the comment before it says; undefined without one. */
  reason: string | undefined
}

export const untriedOf = (markdown: string): Untried[] =>
  [...markdown.matchAll(/^(?:<!-- Not run by a test: (.+) -->\n)?```console\n([\s\S]*?)^```$/gm)].map(
    ([, reason, commands]) => ({ commands: commands!, reason }),
  )

/** Between the outputs of two examples. */
const MARK = '\u001e'

/**
 * Runs the examples in one shell, which ends at the first command that fails. `first` is run before them.
 * @returns what each has printed, without surrounding white space. Throws with all output if a command fails.
 */
export async function runExamples(
  examples: readonly Example[],
  { first, cwd, env }: { first: string; cwd: string; env: Record<string, string> },
): Promise<string[]> {
  const script = [
    `trap 'kill $(jobs -p) 2>/dev/null || true' EXIT`,
    first,
    ...examples.map(({ commands }) => `${commands}\nprintf '${MARK}'`),
  ].join('\n')
  const shell = spawn('bash', ['-e', '-c', script], { cwd, env: { ...process.env, ...env } })
  let printed = ''
  let errors = ''
  shell.stdout.setEncoding('utf8').on('data', (text: string) => {
    printed += text
  })
  shell.stderr.setEncoding('utf8').on('data', (text: string) => {
    errors += text
  })
  const [code] = await once(shell, 'close')
  if (code !== 0) throw new Error(`the commands ended with ${code}:\n${printed}\n${errors}`)
  return (
    printed
      .split(MARK)
      .slice(0, -1)
      // A file for spreadsheets begins with a byte order mark, and its lines end with CRLF.
      .map((text) => text.replaceAll(/\u{feff}|\r(?=\n)/gu, '').trim())
  )
}

/** Whether the output is what the page promises. */
export function isAsPromised(printed: string, promised: string): boolean {
  const lines = promised
    .trim()
    .split('\n')
    .map((line) => (line === '…' ? '[\\s\\S]*' : line.split('…').map(literally).join('.*')))
  return new RegExp(`^${lines.join('\n')}$`).test(printed)
}

const literally = (text: string) => text.replaceAll(/[\\^$.*+?()[\]{}|]/g, '\\$&')
