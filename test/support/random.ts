/** Pseudo-random numbers from a seed (mulberry32), so that a failure can be repeated. */
export function random(seed: number) {
  let state = seed >>> 0
  const next = (): number => {
    state = (state + 0x6d2b79f5) >>> 0
    let t = Math.imul(state ^ (state >>> 15), state | 1)
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61)
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296
  }
  const pick = <T>(from: readonly T[]): T => from[Math.floor(next() * from.length)]!
  return { next, pick }
}
