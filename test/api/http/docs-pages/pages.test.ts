import { deepEqual, doesNotMatch, equal, match, ok } from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { request } from 'undici'
import { MARKDOWN_PAGES, NAVIGATION } from '../../../../api/http/docs-pages/pages.ts'
import { withApi } from '../../../support/with-api.ts'

describe('the pages of /docs', () => {
  const suite = withApi()
  const get = (path: string) => suite.api.request('GET', path, { key: null })
  const paths = NAVIGATION.flatMap(({ pages }) => pages.map(({ path }) => path))
  const hrefsOf = (html: string) => [...html.matchAll(/href="([^"]+)"/g)].map(([, href]) => href!)

  it('are public, each with the navigation to all of them and to the API reference', async () => {
    ok(paths.length >= 16)
    for (const path of paths) {
      const { status, headers, body } = await get(path)
      equal(status, 200, path)
      match(headers.get('content-type')!, /^text\/html/)
      const navigation = /<nav[\s\S]*<\/nav>/.exec(body)![0]
      deepEqual(
        hrefsOf(navigation).filter((href) => href.startsWith('/')),
        paths,
        path,
      )
      match(navigation, new RegExp(`<a href="${path}" aria-current="page">`))
    }
  })

  it('run no script, load nothing, and allow only their own style', async () => {
    for (const path of paths.filter((one) => one !== '/docs')) {
      const { headers, body } = await get(path)
      doesNotMatch(body, /<script|<img| style="| on\w+="/, path)
      const style = /<style>([\s\S]*?)<\/style>/.exec(body)![1]!
      const hash = createHash('sha256').update(style).digest('base64')
      const policy = headers.get('content-security-policy')!
      match(policy, /^default-src 'none'; /)
      ok(policy.includes(`style-src 'sha256-${hash}';`), path)
      doesNotMatch(policy, /unsafe|script-src/)
    }
  })

  it('have no dead link to each other, nor to a section', async () => {
    const bodies = new Map<string, string>()
    for (const path of paths) bodies.set(path, (await get(path)).body)
    const dead = paths.flatMap((path) =>
      hrefsOf(bodies.get(path)!)
        .filter((href) => /^[/#]/.test(href) && !href.startsWith('/docs#') && href !== '/openapi.json')
        .filter((href) => {
          const [target, anchor] = href.split('#')
          const body = bodies.get(target || path)
          return body === undefined || (anchor !== undefined && !body.includes(`id="${anchor}"`))
        })
        .map((href) => `${path}: ${href}`),
    )
    deepEqual(dead, [])
  })

  it('are compressed, and revalidated by clients that have them', async () => {
    for (const { path } of MARKDOWN_PAGES) {
      const accepted = { 'accept-encoding': 'br' }
      const first = await request(suite.api.url + path, { headers: accepted })
      await first.body.dump()
      equal(first.headers['content-encoding'], 'br')
      equal(first.headers['cache-control'], 'no-cache')
      const etag = String(first.headers.etag)
      const again = await request(suite.api.url + path, { headers: { ...accepted, 'if-none-match': etag } })
      equal(again.statusCode, 304, path)
      equal(await again.body.text(), '')
    }
  })

  it('are found by their exact path only', async () => {
    for (const path of [
      '/docs/nothing',
      '/docs/records.md',
      '/docs/../package.json',
      '/docs/%2e%2e/package.json',
    ])
      equal((await get(path)).status, 404, path)
  })
})
