import assert from 'node:assert/strict'

/** Samples of a scrape: `name{labels}` → value. */
export type Samples = Map<string, number>

const SAMPLE = /^([a-zA-Z_:][a-zA-Z0-9_:]*)(\{(.*)\})? (-?[0-9.eE+-]+|[+-]?Inf|NaN)$/i
const LABELS = /^([a-zA-Z_][a-zA-Z0-9_]*="([^"\\\n]|\\["\\n])*",?)*$/
const TYPES = ['counter', 'gauge', 'histogram', 'summary']

/** Parses Prometheus' text format. Throws if a strict parser would refuse it. */
export function parseMetrics(text: string): Samples {
  assert.ok(text.endsWith('\n'), 'the last line has no end')
  const samples: Samples = new Map()
  const types = new Map<string, string>()
  let family = ''
  for (const line of text.split('\n').filter(Boolean)) {
    const comment = /^# (HELP|TYPE) (\S+) (.+)$/.exec(line)
    if (comment) {
      const [, kind, name, rest] = comment as unknown as [string, string, string, string]
      if (name !== family) assert.ok(!types.has(name), `the family ${name} is not in one piece`)
      family = name
      if (kind === 'TYPE') {
        assert.ok(TYPES.includes(rest) && !types.has(name), line)
        types.set(name, rest)
      }
      continue
    }
    const sample = SAMPLE.exec(line)
    assert.ok(sample, `no sample: ${line}`)
    const [, name, , labels = '', value] = sample
    assert.ok(LABELS.test(labels), `labels: ${line}`)
    const suffixes = ['histogram', 'summary'].includes(types.get(family)!)
      ? ['', '_bucket', '_sum', '_count']
      : ['']
    assert.ok(
      suffixes.some((suffix) => name === family + suffix),
      `${name} is not in its family ${family}`,
    )
    const key = labels ? `${name}{${labels}}` : name!
    assert.ok(!samples.has(key), `duplicate: ${key}`)
    samples.set(key, Number(value!.replace('Inf', 'Infinity')))
  }
  return samples
}

/** The sum of the samples of a name that have all of these labels. */
export function sumOf(samples: Samples, name: string, labels: Record<string, string> = {}): number {
  let sum = 0
  for (const [key, value] of samples)
    if (
      key.split('{')[0] === name &&
      Object.entries(labels).every(([label, is]) => key.includes(`${label}="${is}"`))
    )
      sum += value
  return sum
}
