import { deepEqual, equal, ok, throws } from 'node:assert/strict'
import { render, renderTainted } from '../../../../workflows/language/expressions/liquid.ts'
import { references } from '../../../../workflows/language/expressions/references.ts'
import { compare } from '../../../../workflows/nodes/compare.ts'

const inputs = {
  n: 5,
  money: '100.00',
  none: null,
  yes: true,
  day: '2026-01-31',
  deals: [
    { amount: '900.00', stage: 'won', owner: { name: 'Ada' } },
    { amount: '1250.00', stage: 'lost', owner: { name: 'Bob' } },
  ],
}

/** The expressions with their results, by rule. */
const RULES: Record<string, [string, unknown][]> = {
  'numbers compare by value, also those in texts': [
    ['inputs.money == 100', true],
    ['inputs.money > 99', true],
    ['"9" < "10"', true],
    ['"0.1" == 0.10', true],
    ['"9007199254740993" == "9007199254740992"', false],
    ['inputs.deals[0].amount < inputs.deals[1].amount', true],
    ['"10" contains 1', true],
  ],
  'nothing is greater or less than null': [
    ['inputs.none < 1', false],
    ['inputs.none >= 0', false],
    ['inputs.none == nil', true],
    ['inputs.none == 0', false],
  ],
  'times compare by the moment': [
    ['"2026-01-31T09:00:00+01:00" < "2026-01-31T08:30:00Z"', true],
    ['inputs.day < "2026-02-01"', true],
  ],
  '`not` applies before `and`, `and` before `or`': [
    ['false and false or true', true],
    ['true or true and false', true],
    ['not false and false', false],
    ['false and (false or true)', false],
    ['not (inputs.n == 5 or inputs.yes)', false],
    ['(not inputs.yes) or inputs.n == 5', true],
  ],
  'a choice takes one of two values': [
    ['inputs.n > 3 ? "big" : "small"', 'big'],
    ['inputs.none ? inputs.none.x : inputs.n', 5],
    ['inputs.n > 9 ? "large" : inputs.n > 4 ? "medium" : "small"', 'medium'],
    ['inputs.n == 5 ? inputs.deals : nil', inputs.deals],
  ],
  'only what is needed is read': [
    ['inputs.none != nil and inputs.absent.x == 1', false],
    ['inputs.yes or inputs.absent', true],
    ['inputs.yes ? 1 : inputs.absent', 1],
    ['inputs.none.x.y == nil', true],
  ],
  'filters can be in parentheses': [
    ['(inputs.absent | default: "WON" | downcase) == "won"', true],
    ['(inputs.deals | size) > 1 and (inputs.deals | map: "stage" | first) == "won"', true],
    ['inputs.none | default: (inputs.n > 3 ? "x" : "y")', 'x'],
  ],
  'money keeps its digits': [
    ['inputs.money | plus: 0.1', '100.10'],
    ['inputs.money | plus: 1', '101.00'],
    ['"12345678901234567.89" | plus: "0.01"', '12345678901234567.90'],
    ['"12.50" | times: 1.077', '13.4625'],
    ['inputs.money | times: 3', '300.00'],
    ['inputs.money | divided_by: 3 | round: 2', '33.33'],
    ['inputs.money | at_least: 250', '250.00'],
    ['"12.50" | round', 13],
    ['inputs.deals | sum: "amount"', '2150.00'],
    ['inputs.deals | sort: "amount" | map: "amount"', ['900.00', '1250.00']],
  ],
  'numbers stay numbers, and are exact': [
    ['0.1 | plus: 0.2', 0.3],
    ['1.005 | round: 2', 1.01],
    ['"5" | plus: 1', 6],
    ['inputs.none | plus: 1', 1],
    ['10 | divided_by: 4', 2.5],
    ['-7 | modulo: 3', 2],
    ['-1.5 | abs', 1.5],
    ['-3.2 | ceil', -3],
    ['-3.2 | floor', -4],
  ],
  'lists are searched by fields of their items': [
    ['inputs.deals | where: "amount", 900 | size', 1],
    ['inputs.deals | where: "owner.name", "Bob" | map: "stage"', ['lost']],
    ['inputs.deals | reject: "stage", "won" | map: "stage"', ['lost']],
    ['inputs.deals | find: "stage", "won" | json', JSON.stringify(inputs.deals[0])],
    ['inputs.deals | has: "stage", "open"', false],
    ['inputs.deals | find_index: "stage", "lost"', 1],
  ],
  'times are added in named units': [
    ['inputs.day | add_time: 1, "month"', '2026-02-28'],
    ['inputs.day | add_time: -2, "weeks"', '2026-01-17'],
    ['"2026-01-31T23:30:00Z" | add_time: 45, "minutes"', '2026-02-01T00:15:00.000Z'],
    ['inputs.day | time_until: "2026-03-01", "days"', 29],
    ['"2026-03-01" | time_until: inputs.day, "weeks"', -4],
  ],
}

describe('expressions', () => {
  for (const [rule, cases] of Object.entries(RULES))
    it(`follow the rule: ${rule}`, () => {
      for (const [text, expected] of cases) deepEqual(render(`{{ ${text} }}`, { inputs }), expected, text)
    })

  it('compare numbers as conditions do', () => {
    const values = [1, '1', '1.00', '01', 1.5, '9007199254740993', '9007199254740992', '100.00', 100, '-0', 0]
    const signs = { eq: '==', gt: '>', lte: '<=' } as const
    for (const left of values)
      for (const right of values)
        for (const [name, sign] of Object.entries(signs))
          equal(
            render(`{{ inputs.left ${sign} inputs.right }}`, { inputs: { left, right } }),
            compare(left, name as keyof typeof signs, right),
            `${left} ${sign} ${right}`,
          )
  })

  it('leave out the members and items that are missing or empty', () => {
    const leftOut = (value: unknown) =>
      render(value, { inputs: { ...inputs, text: '', list: [], zero: 0, no: false } })
    const names = ['none', 'absent', 'absent.x', 'text', 'list']
    for (const name of names)
      deepEqual(
        leftOut({ a: `{{ inputs.${name} | omit_if_empty }}`, b: [1, `{{inputs.${name}|omit_if_empty}}`, 2] }),
        {
          b: [1, 2],
        },
      )
    deepEqual(leftOut({ n: '{{ inputs.n | omit_if_empty }}', zero: '{{ inputs.zero | omit_if_empty }}' }), {
      n: 5,
      zero: 0,
    })
    deepEqual(
      leftOut({ no: '{{ inputs.no | omit_if_empty }}', x: '{{ inputs.text | strip | omit_if_empty }}' }),
      {
        no: false,
      },
    )
    deepEqual(leftOut({ none: '{{ inputs.none }}' }), { none: null })
    equal(leftOut('{{ inputs.none | omit_if_empty }}'), null)
    for (const text of ['x {{ inputs.n | omit_if_empty }}', '{{ inputs.n | omit_if_empty | upcase }}'])
      throws(() => leftOut(text), /must be the last filter of a placeholder that is the whole text/)
    throws(() => leftOut('{{ (inputs.n | omit_if_empty) == 5 }}'), /outside of parentheses/)
  })

  it('mask the secrets beside what is left out', () => {
    const { rendered, tainted } = renderTainted(
      ['{{ inputs.none | omit_if_empty }}', '{{ secrets.key }}', 'plain'],
      { inputs, secrets: { key: 'a long enough secret' } },
    )
    deepEqual(rendered, ['a long enough secret', 'plain'])
    const shown = tainted.shown(rendered) as string[]
    equal(shown[1], 'plain')
    ok(!JSON.stringify(shown).includes('enough'))
  })

  it('say what is wrong', () => {
    const cases: [string, RegExp][] = [
      ['inputs.n inputs.n', /operator or a filter is missing/],
      ['inputs.n ? 1', /condition \? value : other value/],
      ['== 1', /a value is missing before ==/],
      ['inputs.n ==', /a value is missing at the end/],
      ['(inputs.n', /unbalanced parentheses/],
      ['"abc" | plus: 1', /"abc" is no number/],
      ['inputs.deals | sum: "amout"', /no item of the list has the field amout/],
      ['inputs.day | add_time: 1, "fortnights"', /minutes, hours, days, weeks, months, years/],
      ['inputs.n | divided_by: 0', /divides by zero/],
      [`${'true ? '.repeat(1_000)}1${' : 2'.repeat(1_000)}`, /200 values and operators at most/],
      [`${'('.repeat(1_000)}1${')'.repeat(1_000)}`, /nested too deeply/],
    ]
    for (const [text, message] of cases)
      throws(() => render(`{{ ${text} }}`, { inputs }), { code: 'placeholder_error', message })
  })

  it('list what they read in parentheses, choices and arguments', () => {
    const text = '{{ (inputs.a | default: inputs.b) == inputs.c ? secrets.d : (inputs.e | append: env.f) }}'
    deepEqual(
      references(text).map(({ path, optional }) => `${path.join('.')}${optional ? '?' : ''}`),
      ['inputs.a?', 'inputs.b', 'inputs.c', 'secrets.d', 'inputs.e', 'env.f'],
    )
  })
})
