import { deepEqual, ok } from 'node:assert/strict'
import fc from 'fast-check'
import { passagesOf } from '../../../../db/model/knowledge/passages.ts'
import { DOCUMENT_FORMATS } from '../../../../workflows/shared/knowledge.ts'
import { KNOWLEDGE } from '../../../../workflows/shared/limits.ts'
import { isStorable } from '../../../../workflows/shared/storable-text.ts'
import { stepsOf } from '../../../support/steps.ts'

const long = (word: string) => `${word} `.repeat(KNOWLEDGE.section / word.length).trim()
const words = (text: string) => text.split(/[^\p{L}\p{N}]+/u).filter(Boolean)

describe('the passages of a document', () => {
  it('are its sections, with the headings above them; short ones share a passage', () => {
    const markdown = [
      '# Guide',
      long('intro'),
      '## [Refunds](https://a.example) ##',
      long('refund'),
      '```',
      '# no heading',
      '',
      'x',
      '```',
      'Other',
      '---',
      long('other'),
      '# Short',
      'a',
      '# Tiny',
      'b',
    ].join('\n')
    deepEqual(
      passagesOf(markdown, 'markdown').map(({ heading, text }) => [
        heading,
        text.replaceAll(/(\w+ )\1+/g, '$1'),
      ]),
      [
        ['Guide', 'Guide\n\nintro intro'],
        ['Guide > Refunds', 'Refunds\n\nrefund refund\n\n```\n# no heading\n\nx\n```'],
        ['Guide > Other', 'Other\n\nother other'],
        ['Short', 'Short\n\na\n\nTiny\n\nb'],
      ],
    )
  })

  it('have the text of HTML only', () => {
    const html = `<!doctype html><html><head><title>No</title><style>p { color: red }</style></head><body>
      <h1>Guide</h1><p>Hello <b>w</b>orld<br>n&auml;chste &amp; &lt;b&gt;</p><!-- comment -->
      <script>alert("</p>no")</script><noscript>no</noscript><svg><text>no</text></svg>
      <ul><li>one<li>two</ul><table><tr><th>a</th><th>b</th></tr><tr><td>1</td><td>2</td></tr></table>
      <h2>Code</h2><pre>if x:\n    y</pre><p hidden`
    deepEqual(passagesOf(html, 'html'), [
      {
        heading: 'Guide',
        text: 'Guide\n\nHello world\nnächste & <b>\n\n- one\n\n- two\n\na | b\n\n1 | 2\n\nCode\n\nif x:\n    y',
      },
    ])
  })

  it('are cut at ends of sentences or words, and never within a character', () => {
    const sentences = passagesOf('This is a sentence of some length. '.repeat(200), 'text')
    ok(sentences.length > 3 && sentences.every(({ text }) => text.endsWith('.')))
    const emojis = passagesOf('😀'.repeat(2_000), 'text')
    ok(emojis.length > 2 && emojis.every(({ text }) => isStorable(text)))
  })

  it('hold each word once, within the limits, whatever the text', () => {
    const part = fc.constantFrom(
      '# a',
      '\n',
      '\n\n',
      '<p>',
      '</p>',
      '<li>',
      '<h2>',
      '<script>',
      '</script>',
      '<',
      '&amp;',
      '```',
      '---',
      'word ',
      'x'.repeat(2_000),
      'A sentence. '.repeat(50),
      '\uE000',
      '\u00AD',
      '\0',
      '\r',
    )
    fc.assert(
      fc.property(
        fc.array(part, { maxLength: 60 }),
        fc.constantFrom(...DOCUMENT_FORMATS),
        (parts, format) => {
          const body = parts.join('')
          const passages = passagesOf(body, format)
          ok(passages.length > 0)
          for (const { text, heading } of passages) {
            ok(text.length <= KNOWLEDGE.passage, `${text.length}`)
            ok(heading.length <= KNOWLEDGE.heading)
            ok(!/[\0\r\uE000\u00AD]/.test(text))
          }
          if (format !== 'text') return
          const all = passages.map(({ text }) => text).join('\n')
          // A word that is longer than a passage is cut.
          deepEqual(words(all).join(''), words(body.replaceAll(/[\uE000\u00AD]/g, '')).join(''))
        },
      ),
    )
  })

  for (const [what, body, format] of [
    ['nested elements', '<div>'.repeat(200_000), 'html'],
    ['marks that begin tags', '<'.repeat(1_000_000), 'html'],
    ['entities', '&amp;'.repeat(200_000), 'html'],
    ['attributes', `<a ${'b '.repeat(500_000)}`, 'html'],
    ['headings', '# a\n'.repeat(250_000), 'markdown'],
    ['brackets', '# ['.repeat(300_000), 'markdown'],
    ['one word', 'x'.repeat(1_000_000), 'text'],
  ] as const)
    it(`are made of 1 MB of ${what} by few steps for each character`, async () => {
      // A square of the length would take minutes.
      ok(passagesOf(body, format).length < 3_000)
      const part = body.slice(0, 50_000)
      const steps = await stepsOf(() => passagesOf(part, format))
      ok(steps < 20 * part.length, `${steps} steps`)
    })
})
