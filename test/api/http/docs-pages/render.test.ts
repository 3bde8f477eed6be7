import { deepEqual, doesNotMatch, equal, match } from 'node:assert/strict'
import { renderPage } from '../../../../api/http/docs-pages/render.ts'

const page = { file: 'docs/records.md', path: '/docs/records', title: 'Records' }
const bodyOf = (markdown: string) => renderPage(page, markdown).body

describe('a page of documentation as HTML', () => {
  it('takes its title from the first heading, and lists the sections', () => {
    const { title, body, sections } = renderPage(page, '# All records\n\n## Fields\n\ntext\n\n### Of `x`\n')
    equal(title, 'All records')
    doesNotMatch(body, /<h1/)
    deepEqual(sections, [{ id: 'fields', html: 'Fields' }])
    match(body, /<h3 id="of-x">/)
  })

  it('gives headings the anchors that GitHub gives them', () => {
    const body = bodyOf(
      "## Another SECRETS_KEY\n\n## The operator's commands\n\n## Backup of `npm start`\n\n## Load\n\n## Load\n",
    )
    deepEqual(
      [...body.matchAll(/<h2 id="([^"]+)"/g)].map(([, id]) => id),
      ['another-secrets_key', 'the-operators-commands', 'backup-of-npm-start', 'load', 'load-1'],
    )
  })

  it('leads links of the repository to the served pages, and drops those to other files', () => {
    const body = bodyOf(
      '[a](workflows.md#triggers) [b](../README.md) [c](../SECURITY.md) [d](#fields) [e](https://x.example/?a=1&b) [f](../LICENSE)',
    )
    deepEqual(
      [...body.matchAll(/href="([^"]+)"/g)].map(([, href]) => href),
      [
        '/docs/workflows#triggers',
        '/docs/overview',
        '/docs/security',
        '#fields',
        'https://x.example/?a=1&amp;b',
      ],
    )
    match(body, / f<\/p>/)
  })

  it('shows raw HTML as text, and neither scripts, comments nor images', () => {
    const body = bodyOf(
      '<script>alert(1)</script>\n\n<!-- hidden -->\n\na <b onclick="x()">b</b> ![pic](http://x.example/p.png) [l](javascript:alert(1))',
    )
    doesNotMatch(body, /<script|<!--|hidden|<b |<img|p\.png|href/)
    match(body, /&lt;script&gt;alert\(1\)&lt;\/script&gt;/)
    match(body, /pic/)
  })

  it('escapes code, and links code that is the path of a page of /docs', () => {
    match(bodyOf('`a <b> & "c"`'), /<code>a &lt;b&gt; &amp; &quot;c&quot;<\/code>/)
    match(bodyOf('`/docs/findings`'), /<a href="\/docs\/findings"><code>\/docs\/findings<\/code><\/a>/)
    match(bodyOf('```sh\necho "<x>"\n```'), /<pre><code[^>]*>echo &quot;&lt;x&gt;&quot;/)
  })

  it('renders tables whose cells have code and links', () => {
    const body = bodyOf('| a | b |\n|---|---|\n| `x\\|y` | [w](workflows.md) |\n')
    match(body, /<td><code>x\|y<\/code><\/td><td><a href="\/docs\/workflows">w<\/a><\/td>/)
  })
})
