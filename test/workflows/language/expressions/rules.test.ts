import { deepEqual, equal, ok, throws } from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { FILTERS } from '../../../../workflows/language/expressions/filters.ts'
import { render, renderTainted } from '../../../../workflows/language/expressions/liquid.ts'
import { references } from '../../../../workflows/language/expressions/references.ts'
import { Texts } from '../../../../workflows/language/texts.ts'
import { compare } from '../../../../workflows/nodes/compare.ts'

/** The page has the only table of examples: their data, and for each rule the expressions with their results. */
const PAGE = readFileSync(new URL('../../../../docs/expressions.md', import.meta.url), 'utf8')
const { inputs } = JSON.parse(/```json\n([\s\S]*?)```/.exec(PAGE)![1]!)
const RULES = PAGE.split(/^### /m)
  .slice(1)
  .map((section) => {
    const rows = [...section.matchAll(/^\| `(.+)` \| `(.+)` \|$/gm)].map(
      ([, text, result]) => [text, result].map((cell) => cell!.replaceAll('\\|', '|')) as [string, string],
    )
    return { rule: section.split('\n')[0]!, rows }
  })

describe('expressions', () => {
  for (const { rule, rows } of RULES)
    it(`follow the rule: ${rule}`, () => {
      ok(rows.length > 1)
      for (const [text, expected] of rows)
        deepEqual(render(`{{ ${text} }}`, { inputs }), JSON.parse(expected), text)
    })

  it('have a page that lists every filter', () => {
    equal(RULES.length, 18)
    const [, table = ''] = /## Filters\n([\s\S]*?)\n## /.exec(PAGE)!
    const listed = [...table.matchAll(/^\| .* \| (.*) \|$/gm)].flatMap(([, names]) =>
      [...names!.matchAll(/`(\w+)`/g)].map(([, name]) => name!),
    )
    deepEqual(listed.sort(), [...FILTERS].sort())
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

  it('say at run time which member was meant', () => {
    const scope = {
      inputs,
      nodes: { find: { output: { data: [{ amount: 1 }] } } },
      trigger: { payload: {} },
      secrets: { smtp_key: 'x' },
    }
    const cases: [string, RegExp][] = [
      ['nodes.find.output.data[0].amuont', /amuont: did you mean amount\?$/],
      ['nodes.fnd.output.data', /nodes\.fnd: did you mean find\?$/],
      ['inputs.deals[1].owner.nmae | upcase', /nmae: did you mean name\?$/],
      ['inputs.something_else', /: undefined variable: inputs\.something_else: inputs has /],
      ['trigger.payload.none.deep', /: trigger\.payload is empty$/],
      ['inputs.n.deep', /: inputs\.n is a number$/],
      ['nodes.find.output.data[4].amount', /: nodes\.find\.output\.data is a list of 1$/],
      [
        'nodes.find.output.data.amount',
        /: nodes\.find\.output\.data is a list of 1: read one of its items, or all with a loop$/,
      ],
    ]
    for (const [text, message] of cases)
      throws(() => render(`{{ ${text} }}`, scope), { code: 'placeholder_error', message })
    throws(
      () => renderTainted('{{ secrets.smtp_kye }}', scope),
      (error: Error) => !error.message.includes('smtp_key'),
    )
  })

  it('say what is wrong', () => {
    const cases: [string, RegExp][] = [
      ['inputs.n inputs.n', /operator or a filter is missing/],
      ['inputs.n ? 1', /condition \? value : other value/],
      ['== 1', /a value is missing before ==/],
      ['inputs.n ==', /a value is missing at the end/],
      ['(inputs.n', /unbalanced parentheses/],
      ['"abc" | plus: 1', /"abc" is no number/],
      ['"2,5" | to_integer', /"2,5" is no number/],
      ['inputs.deals | sum: "amout"', /no item of the list has the field amout/],
      ['inputs.day | add_time: 1, "fortnights"', /minutes, hours, days, weeks, months, years/],
      ['inputs.n | divided_by: 0', /divides by zero/],
      [`${'true ? '.repeat(1_000)}1${' : 2'.repeat(1_000)}`, /200 values and operators at most/],
      [`${'('.repeat(1_000)}1${')'.repeat(1_000)}`, /nested too deeply/],
    ]
    for (const [text, message] of cases)
      throws(() => render(`{{ ${text} }}`, { inputs }), { code: 'placeholder_error', message })
  })

  it('go on to compare a number with too many digits, which only a validation refuses', () => {
    const id = Number('12345678901234567890')
    equal(render('{{ inputs.id == 12345678901234567890 }}', { inputs: { id } }), true)
    equal(render('{{ inputs.id | plus: 12345678901234567890 }}', { inputs: { id: 0 } }), id)
    for (const text of ['1 == -9007199254740993', 'inputs.n | plus: 9007199254740993', '(9007199254740993)'])
      throws(() => new Texts().references(`{{ ${text} }}`), /write it in quotes/, text)
    deepEqual(new Texts().references('{{ 9007199254740991 }}'), [])
  })

  it('go on to apply a filter to all before it, which only a validation refuses', () => {
    equal(render('{{ inputs.n > 3 ? inputs.n : 1 | times: 2 }}', { inputs: { n: 5 } }), 10)
    equal(render('{{ inputs.n == nil | default: "none" }}', { inputs: { n: 5 } }), false)
    for (const text of ['inputs.n > 3 ? inputs.n : 1 | times: 2', '(inputs.n > 3 | plus: 1)'])
      throws(() => new Texts().references(`{{ ${text} }}`), /without parentheses/, text)
  })

  it('list what they read in parentheses, choices and arguments', () => {
    const text = '{{ (inputs.a | default: inputs.b) == inputs.c ? secrets.d : (inputs.e | append: env.f) }}'
    deepEqual(
      references(text).map(({ path, optional }) => `${path.join('.')}${optional ? '?' : ''}`),
      ['inputs.a?', 'inputs.b', 'inputs.c', 'secrets.d', 'inputs.e', 'env.f'],
    )
  })
})
