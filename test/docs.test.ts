import assert from 'node:assert/strict'
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, posix } from 'node:path'
import { fileURLToPath } from 'node:url'
import { MARKDOWN_PAGES, readPage } from '../api/http/docs-pages/pages.ts'
import { renderPage } from '../api/http/docs-pages/render.ts'
import { startVariables } from '../worker/dev/config.ts'
import { withVariableTables } from '../worker/dev/variable-tables.ts'
import { attributeDefinitions } from '../worker/search-attributes.ts'
import { docPages, examplesOf, isAsPromised, readDoc, runExamples, untriedOf } from './support/doc-pages.ts'
import { startStack, type TestStack } from './support/stack.ts'

const ROOT = fileURLToPath(new URL('../', import.meta.url))

describe('the documentation', () => {
  it('has a README of at most 200 lines', () => {
    assert.ok(readDoc('README.md').split('\n').length <= 200)
  })

  it('lists every page in the navigation, and no other', () => {
    assert.deepEqual(MARKDOWN_PAGES.map(({ file }) => file).sort(), docPages().sort())
  })

  it('has the tables of variables that their schemas yield: else run `npm run docs`', () => {
    const page = readDoc('docs/configuration.md')
    assert.equal(page, withVariableTables(page))
  })

  it('has a row for every variable that the code reads', () => {
    const configs = ['db/process/config.ts', 'api/config.ts', 'worker/config.ts', 'worker/dev/config.ts']
    const variables = configs.flatMap((path) => [...readDoc(path).matchAll(/^ {2}([A-Z][A-Z0-9_]+):/gm)])
    const rows = readDoc('docs/configuration.md').matchAll(/^\| `([A-Z0-9_]+)` \|/gm)
    const names = (matches: Iterable<RegExpMatchArray>) =>
      [...new Set([...matches].map(([, name]) => name!))].sort()
    assert.deepEqual(names(rows), names(variables))
  })

  it('has no dead link between its pages, to their sections, or to other files', async () => {
    const anchors = new Map<string, string[]>()
    for (const page of MARKDOWN_PAGES) {
      const { body } = renderPage(page, await readPage(page))
      anchors.set(
        page.file,
        [...body.matchAll(/<h\d id="([^"]+)"/g)].map(([, id]) => id!),
      )
    }
    const dead: string[] = []
    let links = 0
    for (const file of docPages())
      for (const [, href] of withoutCode(readDoc(file)).matchAll(/\]\(([^)\s]+)\)/g)) {
        if (/^https?:/.test(href!)) continue
        links++
        const [path, anchor] = href!.split('#')
        const target = path ? posix.join(posix.dirname(file), path) : file
        const known = anchors.get(target)
        const isAlive = anchor === undefined ? known !== undefined : known?.includes(anchor)
        if (!isAlive) dead.push(`${file}: ${href}`)
      }
    assert.deepEqual(dead, [])
    assert.ok(links > 40)
  })

  it('names no file of the project that does not exist', () => {
    const missing: string[] = []
    let named = 0
    for (const file of docPages())
      for (const [, path] of readDoc(file).matchAll(
        /`((?:api|worker|workflows|activities|db|docs|test)\/[\w./-]+)`/g,
      )) {
        named++
        if (!existsSync(join(ROOT, path!))) missing.push(`${file}: ${path}`)
      }
    assert.deepEqual(missing, [])
    assert.ok(named > 40)
  })

  it('names only the scripts that exist', () => {
    const { scripts } = JSON.parse(readDoc('package.json'))
    const named = docPages().flatMap((file) =>
      [...readDoc(file).matchAll(/\bnpm run ([a-z:-]+)/g)].map(([, name]) => `${file}: ${name}`),
    )
    assert.deepEqual(
      named.filter((one) => !Object.hasOwn(scripts, one.split(': ')[1]!)),
      [],
    )
    assert.ok(named.length > 15)
  })
})

describe('the commands of the documentation that no test runs', () => {
  const untried = docPages().flatMap((page) => untriedOf(readDoc(page)).map((one) => ({ page, ...one })))

  it('say why, in a comment before them', () => {
    const silent = untried.filter(({ reason }) => reason === undefined)
    assert.deepEqual(silent, [])
    assert.ok(untried.length > 10)
  })

  it('name only files and environment variables that exist', () => {
    const missing: string[] = []
    let named = 0
    for (const { page, commands } of untried)
      for (const line of commands.split('\n')) {
        const paths = [...line.matchAll(/(?<![\w./-])((?:api|worker|db|deploy|docs|test)\/[\w./-]+)/g)]
        const files = paths.map(([path]) => path)
        const absent = files.filter((path) => !existsSync(join(ROOT, path)))
        // A variable of a test is read in the file that the line runs.
        const read = files.filter((path) => path.endsWith('.test.ts') && !absent.includes(path)).map(readDoc)
        const unread = [...line.matchAll(/\b([A-Z][A-Z0-9_]+)=/g)]
          .map(([, name]) => name!)
          .filter((name) => !Object.hasOwn(startVariables.shape, name))
          .filter((name) => !read.some((text) => text.includes(`process.env.${name}`)))
        named += files.length
        missing.push(...[...absent, ...unread].map((name) => `${page}: ${name}`))
      }
    assert.deepEqual(missing, [])
    assert.ok(named >= 10)
  })

  it('create the search attributes that a worker sets', () => {
    const { commands } = untried.find((one) => one.commands.includes('search-attribute create'))!
    const keywords = /^for name in (.+)$/m
      .exec(commands)![1]!
      .split(' ')
      .map((name) => `${name}=Keyword`)
    const others = [...commands.matchAll(/--name (\w+) --type (\w+)/g)].map(
      ([, name, type]) => `${name}=${type}`,
    )
    assert.deepEqual([...keywords, ...others].sort(), [...attributeDefinitions].sort())
  })
})

describe('the promised output of an example', () => {
  it('is compared as a whole, with … for anything in a line, and for lines', () => {
    assert.ok(isAsPromised('{"id":"x","n":1}', '{"id":"…","n":1}\n'))
    assert.ok(isAsPromised('a\nb\nc', 'a\n…\nc'))
    assert.ok(!isAsPromised('{"id":"x","n":2}', '{"id":"…","n":1}'))
    assert.ok(!isAsPromised('a\nb', 'a'))
    assert.ok(!isAsPromised('a\nb', '…\nc'))
    assert.ok(!isAsPromised('axb', 'a.b'))
  })
})

describe('the commands of the documentation', () => {
  let stack: TestStack
  const folders: string[] = []
  const withUrl = (text: string) => text.replaceAll('http://localhost:8080', stack.apiUrl)
  const run = (page: string, examples = examplesOf(withUrl(readDoc(page)))) => {
    const cwd = mkdtempSync(join(tmpdir(), 'agx-docs-'))
    folders.push(cwd)
    const [definitions] = examplesOf(withUrl(readDoc('README.md')))
    const env = { KEY: stack.key, PASSWORD: stack.owner.password }
    return runExamples(examples, { first: definitions!.commands, cwd, env })
  }

  before(async () => {
    stack = await startStack({
      onSuite: true,
      env: { ALLOW_INSECURE_WEBHOOKS: 'true', EGRESS_ALLOW: '127.0.0.0/8' },
    })
  })
  after(async () => {
    await stack?.stop()
    for (const folder of folders) rmSync(folder, { recursive: true, force: true })
  })

  // The README first: the pages build on it.
  for (const page of docPages().filter((one) => examplesOf(readDoc(one)).length > 0))
    it(`of ${page} print what it promises`, async () => {
      const examples = examplesOf(withUrl(readDoc(page)))
      const printed = await run(page, examples)
      assert.equal(printed.length, examples.length)
      for (const [at, { commands, promised }] of examples.entries()) {
        if (promised === undefined) assert.equal(printed[at], '', commands)
        else if (!isAsPromised(printed[at]!, promised)) assert.equal(printed[at], promised.trim(), commands)
      }
    })

  it('fail with what they printed if one of them fails', async () => {
    await assert.rejects(
      run('README.md', [{ commands: 'echo before; false; echo after', promised: undefined }]),
      ({ message }: Error) => message.includes('before') && !message.includes('after'),
    )
  })

  it('are served with their pages by the api of `npm start`, which runs compiled', async () => {
    for (const { path, title } of MARKDOWN_PAGES) {
      const answer = await fetch(stack.apiUrl + path)
      assert.equal(answer.status, 200, path)
      assert.match(await answer.text(), new RegExp(`aria-current="page">${title}</a>`))
    }
  })

  it('are the tour of the README, and of seven pages at least', () => {
    const pages = docPages().filter((page) => examplesOf(readDoc(page)).length > 0)
    assert.ok(pages.length >= 8 && pages[0] === 'README.md', pages.join(', '))
    const tour = examplesOf(readDoc('README.md').split('## Five minutes')[1]!.split('\n## ')[0]!)
    const promised = tour.map((example) => example.promised ?? '').join('\n')
    for (const part of [
      /"first_name":"Ada"/,
      /"total":1/,
      /did you mean email/,
      /"valid":true/,
      /"success":true/,
      /"status":"completed"/,
    ])
      assert.match(promised, part)
  })
})

const withoutCode = (markdown: string) =>
  markdown.replaceAll(/^```[\s\S]*?^```$/gm, '').replaceAll(/`[^`\n]*`/g, '')
