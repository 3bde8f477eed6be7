const UNITS = ['bytes', 'KB', 'MB', 'GB', 'TB']

/** A number of bytes in its largest unit: `12.4 MB`, of 1,024 KB each. */
export function bytesText(bytes: number): string {
  let unit = 0
  let value = bytes
  while (value >= 1_024 && unit < UNITS.length - 1) {
    value /= 1_024
    unit++
  }
  const digits = unit === 0 || value >= 100 ? 0 : 1
  return `${value.toLocaleString('en', { maximumFractionDigits: digits })} ${UNITS[unit]}`
}
