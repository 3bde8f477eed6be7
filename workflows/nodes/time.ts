/** `2026-03-01`, or with a time `2026-03-01T09:30`, `…:00.000`, and an offset `Z`, `+01:00` or `+0100`. */
const TIME = /^(\d{4}-\d\d-\d\d)(?:[Tt ](\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?) ?([Zz]|[+-]\d\d:?\d\d)?)?$/

/**
 * The moment that a text names. A date is its midnight; a text without an offset is local time in `timezone`, an IANA
 * name. A local time that a change of clocks skips is moved behind the gap. Undefined if the text is no time.
 */
export function parseTime(text: string, timezone = 'UTC'): Date | undefined {
  const [, date, time = '00:00', offset] = TIME.exec(text.trim()) ?? []
  const local = Date.parse(`${date}T${time}Z`)
  // Date.parse reads 30 February as 2 March.
  if (Number.isNaN(local) || new Date(local).toISOString().slice(0, 10) !== date) return undefined
  if (offset === undefined) return new Date(local - offsetAt(local - offsetAt(local, timezone), timezone))
  const minutes = minutesOf(offset)
  return minutes === undefined ? undefined : new Date(local - minutes * 60_000)
}

function minutesOf(offset: string): number | undefined {
  const [, sign, hours, minutes] = /^([+-])(\d\d):?(\d\d)$/.exec(offset) ?? []
  if (sign === undefined) return 0
  if (Number(hours) > 14 || Number(minutes) > 59) return undefined
  return (sign === '-' ? -1 : 1) * (Number(hours) * 60 + Number(minutes))
}

/** The milliseconds by which the clocks of a time zone are ahead of UTC at a moment. */
function offsetAt(moment: number, timezone: string): number {
  if (timezone === 'UTC') return 0
  const format = new Intl.DateTimeFormat('en', { timeZone: timezone, timeZoneName: 'longOffset' })
  const name = format.formatToParts(moment).find(({ type }) => type === 'timeZoneName')?.value ?? ''
  return (minutesOf(name.replace('GMT', '')) ?? 0) * 60_000
}
