import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { readDoc } from './doc-pages.ts'

/** The fields of log lines: those that the documentation names, and those that the source gives. */

const ROOT = fileURLToPath(new URL('../../', import.meta.url))
const FOLDERS = ['activities', 'api', 'db', 'worker']
/** `npm start` prints for people. */
const LEFT_OUT = ['worker/dev/']
/** The object of a line, or of the lines of a child. */
const LOGGED = /\blog\??\.(?:trace|debug|info|warn|error|fatal|child)\(\s*(?=\{)/g

/** The names in the first column of the table of fields. */
export function documentedLogFields(): Set<string> {
  const page = readDoc('docs/operations.md').split('\n### Fields of a line\n')[1]!.split('\n## ')[0]!
  const cells = [...page.matchAll(/^\| (.+?) \|/gm)].map(([, cell]) => cell!)
  return new Set(cells.flatMap((cell) => [...cell.matchAll(/`(\w+)`/g)].map(([, name]) => name!)))
}

/**
 * The members of object literals that the source logs, without those that it spreads or computes.
 */
export function loggedFields(): { file: string; name: string }[] {
  const files = FOLDERS.flatMap((folder) =>
    readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' }).map((name) => `${folder}/${name}`),
  ).filter((file) => file.endsWith('.ts') && !LEFT_OUT.some((folder) => file.startsWith(folder)))
  return files.flatMap((file) => {
    const source = readFileSync(join(ROOT, file), 'utf8')
    return [...source.matchAll(LOGGED)].flatMap(({ index, 0: call }) =>
      membersAt(source, index + call.length).map((name) => ({ file, name })),
    )
  })
}

/** The names of the members of the object literal that begins at a position of a source. */
function membersAt(source: string, begin: number): string[] {
  let depth = 0
  let member = ''
  const members: string[] = []
  for (const character of source.slice(begin)) {
    if ('}])'.includes(character)) depth--
    if (depth === 0 && character === '}') break
    if (depth === 1 && character === ',') {
      members.push(member)
      member = ''
    } else if (depth > 0) member += character
    if ('{[('.includes(character)) depth++
  }
  return [...members, member].flatMap((text) => /^\s*(\w+)\s*(?::|$)/.exec(text)?.[1] ?? [])
}
