import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'

const read = (path: string) => readFileSync(new URL(`../${path}`, import.meta.url), 'utf8')

describe('the settings table of the README', () => {
  it('names every setting that is read, and no other', () => {
    const configs = ['db/config.ts', 'api/config.ts', 'worker/config.ts', 'worker/dev/config.ts']
    const settings = configs.flatMap((path) => [...read(path).matchAll(/^ {2}([A-Z][A-Z_]+):/gm)])
    const rows = read('README.md')
      .split('\n')
      .filter((line) => /^\| `[A-Z]/.test(line))
    const named = rows.flatMap((row) => [...row.split('|')[1]!.matchAll(/`([A-Z_]+)`/g)])
    const sorted = (matches: RegExpMatchArray[]) => [...new Set(matches.map((match) => match[1]!))].sort()
    assert.deepEqual(sorted(named), sorted(settings))
  })
})
