import { type LoadResult, median } from './load.ts'

/** Prints a line of results, and clears the progress. */
export function print(line: string): void {
  progress('')
  process.stdout.write(`${process.stdout.isTTY ? '\r' : ''}  ${line}\n`)
}

/** Shows a line on a terminal, until the next one. */
export function progress(line: string): void {
  if (process.stdout.isTTY) process.stdout.write(`\r  ${line}\x1b[K`)
}

export interface Pair {
  ours: LoadResult
  floor: LoadResult
}

/** Measures both sides in turn, `rounds` times, so that a change of the machine's speed affects both. */
export async function inTurns(
  rounds: number,
  ours: () => Promise<LoadResult>,
  floor: () => Promise<LoadResult>,
): Promise<Pair[]> {
  const pairs: Pair[] = []
  for (let round = 0; round < rounds; round++) {
    const first = await floor()
    pairs.push({ ours: await ours(), floor: first })
  }
  return pairs
}

const of = (pairs: Pair[], pick: (pair: Pair) => number) => median(pairs.map(pick))

/** One line: both rates, their ratio (the median of the rounds), and the latencies. */
export function printPairs(name: string, pairs: Pair[]): void {
  const ratio = of(pairs, ({ ours, floor }) => ours.perSecond / floor.perSecond)
  print(
    [
      name.padEnd(28),
      `${of(pairs, ({ ours }) => ours.perSecond).toFixed(0)}/s`.padStart(8),
      `floor ${of(pairs, ({ floor }) => floor.perSecond).toFixed(0)}/s`.padStart(14),
      `ratio ${ratio.toFixed(2)}`.padStart(12),
      `p50 ${of(pairs, ({ ours }) => ours.p50).toFixed(1)} ms (floor ${of(pairs, ({ floor }) => floor.p50).toFixed(1)})`,
      `p99 ${of(pairs, ({ ours }) => ours.p99).toFixed(1)} ms (floor ${of(pairs, ({ floor }) => floor.p99).toFixed(1)})`,
    ].join('  '),
  )
  const refused = pairs.reduce((sum, { ours }) => sum + ours.refused, 0)
  if (refused > 0) print(`${name}: ${refused} answers were not 2xx, the figures are void`)
}

/** The sides of a comparison: many records, few records, and the floor with many. */
export interface Three<T> {
  big: T
  small: T
  floor: T
}

/** Measures the three in turn; the first round is a warm-up and does not count. */
export async function inRounds(
  rounds: number,
  of: Three<() => Promise<LoadResult>>,
): Promise<Three<LoadResult>[]> {
  const results: Three<LoadResult>[] = []
  for (let round = 0; round <= rounds; round++)
    results.push({ floor: await of.floor(), small: await of.small(), big: await of.big() })
  return results.slice(1)
}

/** One line: p50 and p99 of the three, and how p50 grows from few to many. */
export function printTimes(name: string, rounds: Three<LoadResult>[]): void {
  const time = (of: keyof Three<unknown>, pick: 'p50' | 'p99') =>
    median(rounds.map((round) => round[of][pick])).toFixed(1)
  const times = (of: keyof Three<unknown>) => `p50 ${time(of, 'p50')} p99 ${time(of, 'p99')} ms`.padEnd(25)
  const growth = median(rounds.map(({ big, small }) => big.p50 / small.p50))
  print(
    `${name.padEnd(24)} ${times('big')} few ${times('small')} floor ${times('floor')} ×${growth.toFixed(2)}`,
  )
  warn(name, rounds)
}

/** One line: rates of the three, and the ratio of many to the floor (the median of the rounds). */
export function printRates(name: string, rounds: Three<LoadResult>[]): void {
  const rate = (of: keyof Three<unknown>) => median(rounds.map((round) => round[of].perSecond)).toFixed(0)
  const ratio = median(rounds.map(({ big, floor }) => big.perSecond / floor.perSecond)).toFixed(2)
  const p99 = median(rounds.map(({ big }) => big.p99)).toFixed(1)
  print(
    `${name.padEnd(24)} ${rate('big')}/s, few ${rate('small')}/s, floor ${rate('floor')}/s, ratio ${ratio}, p99 ${p99} ms`,
  )
  warn(name, rounds)
}

function warn(name: string, rounds: Three<LoadResult>[]): void {
  const refused = rounds
    .flatMap(({ big, small, floor }) => [big, small, floor])
    .reduce((sum, one) => sum + one.refused, 0)
  if (refused > 0) print(`${name}: ${refused} answers were not 2xx, the figures are void`)
}
