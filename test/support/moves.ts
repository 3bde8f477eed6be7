import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import fc from 'fast-check'

/** A line of the table of moves in the header comment of a source file. */
export interface TableRow {
  /** The function, and the variant if it has several moves: `endAttempt, failed`. */
  move: string
  from: string[]
  to: string[]
}

const BIRTH = '(none)'
const UNCHANGED = 'unchanged'

/**
 * The table in a file's header comment; if it has several, the one below the line `<title>:`. Without the moves that
 * create a row. Throws if there is none.
 */
export function readTable(path: string, title?: string): TableRow[] {
  const source = readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8')
  const start = title === undefined ? 0 : source.indexOf(`\n * ${title}:`)
  assert.ok(start >= 0, `${path} has no table of ${title}`)
  const [block] = /(?:^ \* \|.*\n)+/m.exec(source.slice(start)) ?? []
  assert.ok(block, `${path} has no table`)
  const rows = block
    .trim()
    .split('\n')
    .slice(2)
    .map((line) => {
      const [, move = '', from = '', to = ''] = line.split('|').map((cell) => cell.trim())
      return { move, from: from.split(', '), to: to.split(', ') }
    })
    .filter(({ from }) => !from.includes(BIRTH))
  assert.ok(rows.length > 0, `the table of ${path} is empty`)
  return rows
}

/** A row of a table under test, created for one case. */
export interface Fixture {
  status(): Promise<string>
  /** The values that a move may write. */
  snapshot(): Promise<unknown>
  remove(): Promise<void>
}

/** The functions with which a test makes a move. */
export interface Driver<F extends Fixture> {
  /** Satisfies the conditions of the move to this status. */
  arrange?(fixture: F, to: string): Promise<unknown>
  /** Tries the move. @returns whether it reports success. */
  act(fixture: F, to: string): Promise<boolean>
  /** Tries the move while a condition is not satisfied. */
  unmet?: Record<string, (fixture: F, to: string) => Promise<boolean>>
}

export interface MovesOptions<F extends Fixture> {
  table: TableRow[]
  statuses: readonly string[]
  fixture(status: string): Promise<F>
  /** Drivers by the table's `move`, in the order of its lines if two have the same name. */
  drivers: Record<string, Driver<F> | Driver<F>[]>
}

/** Declares tests: every move of a table, tried on every status, changes what the table allows and nothing else. */
export function describeMoves<F extends Fixture>({ table, statuses, fixture, drivers }: MovesOptions<F>) {
  const moves = table.map((row) => {
    const namesakes = table.filter(({ move }) => move === row.move)
    const driver = [drivers[row.move] ?? []].flat()[namesakes.indexOf(row)]
    return { ...row, driver, namesakes }
  })
  const withFixture = async (status: string, work: (fixture: F) => Promise<void>) => {
    const made = await fixture(status)
    await work(made).finally(() => made.remove())
  }
  const says = (trying: Promise<boolean>) => trying.catch(() => false)

  it('has a test for each line of the table, and statuses that exist', () => {
    for (const { move, driver, from, to } of moves) {
      assert.ok(driver, `no test makes the move ${move}`)
      for (const status of [...from, ...to]) assert.ok([...statuses, UNCHANGED].includes(status), status)
    }
    assert.deepEqual(
      Object.keys(drivers).filter((name) => !table.some(({ move }) => move === name)),
      [],
    )
  })

  for (const { move, from, to, driver, namesakes } of moves)
    for (const target of to) {
      it(`${move}: from ${from.join(', ')} to ${target}, from no other status`, async () => {
        for (const status of statuses)
          await withFixture(status, async (made) => {
            await driver!.arrange?.(made, target)
            const before = await made.snapshot()
            const moved = await says(driver!.act(made, target))
            const after = await made.status()
            const expected = !from.includes(status) || target === UNCHANGED ? status : target
            assert.equal(after, expected, `from ${status} it became ${after}`)
            assert.equal(moved, from.includes(status), `from ${status} it said ${moved}`)
            const another = namesakes.some((other) => other.from.includes(status))
            if (!another) assert.deepEqual(await made.snapshot(), before, `from ${status} it wrote something`)
          })
      })
      for (const [condition, attempt] of Object.entries(driver?.unmet ?? {}))
        it(`${move} to ${target}: changes nothing of ${condition}`, async () => {
          for (const status of from)
            await withFixture(status, async (made) => {
              const moved = await says(attempt(made, target))
              assert.deepEqual([await made.status(), moved], [status, false])
            })
        })
    }

  it('makes no other move in any order of attempts', async () => {
    const attempt = fc.constantFrom(...moves.flatMap((one) => one.to.map((target) => ({ ...one, target }))))
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom(...statuses),
        fc.array(attempt, { minLength: 2, maxLength: 6 }),
        (first, attempts) =>
          withFixture(first, async (made) => {
            for (const { move, driver, target } of attempts) {
              const before = await made.status()
              await driver!.arrange?.(made, target)
              await says(driver!.act(made, target))
              const after = await made.status()
              const known = table.some(({ from, to }) => from.includes(before) && to.includes(after))
              assert.ok(before === after || known, `${move} made ${after} of ${before}`)
            }
          }),
      ),
      { numRuns: 40 },
    )
  })
}
