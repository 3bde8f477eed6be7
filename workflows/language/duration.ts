const UNITS = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 }

/** A whole number and a unit: `500ms`, `30s`, `5m`, `2h`, `1d`. */
export const DURATION = /^(\d{1,10})(ms|s|m|h|d)$/

/** @returns milliseconds, or undefined if the text is not a duration. */
export function parseDuration(text: string): number | undefined {
  const match = DURATION.exec(text)
  return match ? Number(match[1]) * UNITS[match[2] as keyof typeof UNITS] : undefined
}
