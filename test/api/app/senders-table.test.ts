import { equal, ok } from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { describedSenders } from '../../../api/app/incoming-senders.ts'

/** With RECORD_SENDERS=1 the test writes the table of the page; otherwise it compares with it. */
const PAGE = new URL('../../../docs/incoming-webhooks.md', import.meta.url)

const HEAD = `| \`sender\` | \`verification\` | a repetition is known by | mapped by its own paths |
|---|---|---|---|
`
const AFTER = '\n\n## Sources that are polled\n'

const rows = describedSenders().map(
  ({ id, documentation, verification, delivery_id, answers_ping, maps }) => {
    const own = verification.type === 'hmac' ? ` (\`${verification.header}\`)` : ''
    const kinds = maps.length > 0 ? maps.join(', ') : '—'
    return `| [\`${id}\`](${documentation})${answers_ping ? ', pings' : ''} | \`${verification.type}\`${own} | ${delivery_id} | ${kinds} |`
  },
)

describe('the table of senders in the documentation', () => {
  it('is that of the registry: RECORD_SENDERS=1 writes it again', () => {
    const page = readFileSync(PAGE, 'utf8')
    const [begin, end] = [page.indexOf(HEAD), page.indexOf(AFTER)]
    ok(begin > 0 && end > begin, 'the page has the head of the table, before the chapter of sources')
    const written = `${page.slice(0, begin)}${HEAD}${rows.join('\n')}${page.slice(end)}`
    if (process.env.RECORD_SENDERS) writeFileSync(PAGE, written)
    else equal(page, written)
  })

  it('has the documentation of each sender, once', () => {
    equal(new Set(rows).size, rows.length)
    for (const { documentation, delivery_id } of describedSenders()) {
      ok(documentation.startsWith('https://'), documentation)
      ok(delivery_id.length > 0, documentation)
    }
  })
})
