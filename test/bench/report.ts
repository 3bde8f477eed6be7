import { type LoadResult, median } from './load.ts'

/** Prints a line of results. */
export const print = (line: string): void => void process.stdout.write(`  ${line}\n`)

export interface Pair {
  ours: LoadResult
  floor: LoadResult
}

/** Measures both sides in turn, `rounds` times, so that a change of the machine's speed meets both. */
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
