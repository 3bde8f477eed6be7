import { deepEqual, equal, match } from 'node:assert/strict'
import { catalogue } from '../../../api/v1/catalogue.ts'
import { compile } from '../../../workflows/authoring/compile.ts'
import { validateSpec } from '../../../workflows/authoring/validate.ts'
import { LATER_LANGUAGE } from '../../../workflows/language/definition.ts'

const TRIGGER = 'trigger: {type: event, events: [contact.created]}'
const check = (settings: string, trigger = TRIGGER) =>
  validateSpec(
    `name: Test\n${trigger}\nsettings: {${settings}}\nnodes:\n  a: {type: stop, config: {message: x}}\n`,
    catalogue,
  )
const errors = (settings: string, trigger?: string) =>
  check(settings, trigger).result.errors.map(({ code, path, message, hint, line }) => ({
    code,
    path,
    message,
    hint,
    line,
  }))

describe('settings with keys', () => {
  const KEY = 'key: "{{ trigger.record.id }}"'

  it('compile to what a run passes before it is queued, and need a newer engine', () => {
    const { definition } = check(
      `concurrency: {${KEY}, limit: 2}, debounce: {${KEY}, for: 30s, at_most: 5m}, rate: {limit: 10, per: 1m, policy: skip}`,
    )
    const { settings, engine } = compile(definition!)
    const key = '{{ trigger.record.id }}'
    deepEqual(settings, {
      admission: {
        concurrency: { key, limit: 2, policy: 'queue' },
        debounce: { key, for_ms: 30_000, at_most_ms: 300_000 },
        rate: { limit: 10, per_ms: 60_000, policy: 'skip' },
      },
    })
    equal(engine, LATER_LANGUAGE.admission)
    deepEqual(compile(check('concurrency: 3').definition!).settings, { concurrency: 3 })
  })

  const REFUSED: [string, string][] = [
    ['concurrency: {key: customers}', '/settings/concurrency/key'],
    ['concurrency: {key: ""}', '/settings/concurrency/key'],
    [`concurrency: {key: "{{ trigger.record.id }}${'x'.repeat(10_240)}"}`, '/settings/concurrency/key'],
    [`concurrency: {${KEY}, limit: 0}`, '/settings/concurrency/limit'],
    [`concurrency: {${KEY}, policy: allow}`, '/settings/concurrency/key'],
    [`debounce: {${KEY}}`, '/settings/debounce/for'],
    [`debounce: {${KEY}, for: 365d}`, '/settings/debounce/for'],
    [`debounce: {${KEY}, for: 0s}`, '/settings/debounce/for'],
    [`debounce: {${KEY}, for: 1m, at_most: 30s}`, '/settings/debounce/at_most'],
    [`rate: {${KEY}, limit: 1000000000, per: 1m}`, '/settings/rate/limit'],
    [`rate: {${KEY}, limit: 0, per: 1m}`, '/settings/rate/limit'],
    [`rate: {${KEY}, limit: 10, per: 1m, policy: drop}`, '/settings/rate/policy'],
    [`rate: {${KEY}, limit: 10}`, '/settings/rate/per'],
  ]
  for (const [settings, path] of REFUSED)
    it(`refuse ${settings.slice(0, 80)}`, () => {
      const [first, ...others] = errors(settings)
      equal(first!.path, path)
      equal(others.length, 0)
    })

  it('check the placeholders of keys as others', () => {
    const of = (placeholder: string, trigger?: string) =>
      errors(`debounce: {key: "{{ ${placeholder} }}", for: 1m}`, trigger)[0]
    match(of('trigger.record.emial')!.hint!, /email/)
    equal(of('inputs.nobody')!.path, '/settings/debounce/key')
    deepEqual([of('nodes.a.output.x')!.code, of('run.id')!.code], ['unknown_root', 'unknown_root'])
    match(of('trigger.record')!.message, /is of type object: a key is a text or a number/)
    equal(of('trigger.record.id | nofilter')!.code, 'placeholder_syntax')
    equal(of('trigger.record.id'), undefined)
    equal(of('trigger.record.id', 'trigger: manual'), undefined)
    const { result } = check('debounce: {key: "{{ trigger.record.id }}", for: 1m}', 'trigger: manual')
    equal(result.warnings[0]!.code, 'trigger_without_record')
  })
})
