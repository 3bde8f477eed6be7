import { deepEqual, equal, match, ok } from 'node:assert/strict'
import { catalogue } from '../../../api/v1/catalogue.ts'
import { validateSpec } from '../../../workflows/authoring/validate.ts'
import type { HttpRequest, HttpResponse } from '../../../workflows/effects/http.ts'
import { errorOf, outputOf } from '../../support/execute-node.ts'
import { httpResponse } from '../../support/http-response.ts'

const URL_ = 'https://api.example.com/things?limit=2'
type Answer = (url: URL, request: HttpRequest) => Partial<HttpResponse>

describe('api_request with paginate', () => {
  let calls: string[] = []
  const options = (answer: Answer, scope = {}) => ({
    scope,
    effects: {
      http: {
        request: async (request: HttpRequest) => {
          calls.push(request.url)
          ok(calls.length < 50, 'it never ends')
          return httpResponse(answer(new URL(request.url), request))
        },
      },
    } as never,
  })
  const read = (paginate: object, answer: Answer, config: object = {}, scope = {}) =>
    outputOf('api_request', { url: URL_, paginate, ...config }, options(answer, scope))
  const failed = (paginate: object, answer: Answer, config: object = {}, scope = {}) =>
    errorOf('api_request', { url: URL_, paginate, ...config }, options(answer, scope))
  beforeEach(() => {
    calls = []
  })

  /** Three pages, the last without a way on. */
  const numbered = (n: number) => ({ data: [{ id: n * 2 }, { id: n * 2 + 1 }] })
  const six = [0, 1, 2, 3, 4, 5].map((id) => ({ id }))

  it('follows a Link header, also relative, and ends where it has no such link', async () => {
    const header = [
      '</things?limit=2&after=1>; rel="next", <https://api.example.com/last>; rel=last',
      '<https://api.example.com/first>; rel="first", <https://api.example.com/things?after=2>; title="a, b"; REL=Next',
      '<https://api.example.com/first>; rel="first prev"',
    ]
    const output = await read({ link_header: 'next', items: 'body.data' }, () => ({
      headers: { link: header[calls.length - 1]! },
      body: numbered(calls.length - 1),
    }))
    deepEqual(output, { items: six, pages: 3, ended_by: 'end' })
    deepEqual(calls, [
      URL_,
      'https://api.example.com/things?limit=2&after=1',
      'https://api.example.com/things?after=2',
    ])
  })

  it('follows a link of the body until it is null', async () => {
    const links = ['/things?p=2', 'https://api.example.com/things?p=3', null]
    const output = await read({ next: 'body.links.next', items: 'body.data' }, () => ({
      body: { ...numbered(calls.length - 1), links: { next: links[calls.length - 1] } },
    }))
    deepEqual([output.items, output.pages], [six, 3])
  })

  it('sends a cursor of the body or a header as a parameter, until it is absent or empty', async () => {
    for (const last of [undefined, null, '', false]) {
      calls = []
      const cursors = ['a b', 7, last]
      const output = await read(
        { cursor: { path: 'body.meta.next', parameter: 'after' }, items: 'body.data' },
        () => ({ body: { ...numbered(calls.length - 1), meta: { next: cursors[calls.length - 1] } } }),
        { query: { key: 'x' } },
      )
      deepEqual([output.items, output.pages], [six, 3])
      deepEqual(calls, [`${URL_}&key=x`, `${URL_}&key=x&after=a+b`, `${URL_}&key=x&after=7`])
    }
    calls = []
    const headers = [{ 'x-next': 'q' }, {}]
    await read({ cursor: { path: 'headers.x-next', parameter: 'c' } }, () => ({
      headers: headers[calls.length - 1] as Record<string, string>,
      body: [calls.length],
    }))
    deepEqual(calls, [URL_, `${URL_}&c=q`])
  })

  it('counts pages until one is empty, also from 0 and by an offset', async () => {
    const upTo = (most: number, name: string) => (url: URL) => {
      const n = Number(url.searchParams.get(name))
      return { body: n > most ? [] : [n] }
    }
    deepEqual(await read({ page: {} }, upTo(3, 'page')), { items: [1, 2, 3], pages: 4, ended_by: 'end' })
    const offset = await read({ page: { parameter: 'skip', from: 0, step: 2 } }, upTo(4, 'skip'), {
      url: `${URL_}&skip=9`,
    })
    deepEqual(offset.items, [0, 2, 4])
    equal(calls.at(-1), `${URL_}&skip=6`)
  })

  it('ends with the page for which `until` holds, with its items', async () => {
    const output = await read(
      { page: {} },
      (url) => ({ body: [{ n: Number(url.searchParams.get('page')) }] }),
      { until: '{{ page.body[0].n >= inputs.last }}' },
      { inputs: { last: 2 } },
    )
    deepEqual(output, { items: [{ n: 1 }, { n: 2 }], pages: 2, ended_by: 'until' })
    const [code] = await failed({ page: {} }, () => ({ body: [1] }), { until: '{{ page.body[0] }}' })
    equal(code, 'invalid_config')
  })

  it('fails at a limit, or takes what fits', async () => {
    const endless: Answer = (url) => ({ body: [Number(url.searchParams.get('page')), 0] })
    const large: Answer = (url) => ({ body: [url.searchParams.get('page')!.padEnd(400_000)] })
    for (const [settings, answer, items, message] of [
      [{ max_pages: 2 }, endless, 4, /more than 2 pages: .*`on_limit: stop`/],
      [{ max: 3 }, endless, 3, /more than 3 items/],
      [{}, large, 2, /items of 3 pages are larger than 1 MiB/],
    ] as const) {
      calls = []
      const [code, why] = await failed({ page: {}, ...settings }, answer)
      equal(code, 'page_limit')
      match(why, message)
      calls = []
      const output = await read({ page: {}, on_limit: 'stop', ...settings }, answer)
      deepEqual([(output.items as []).length, output.ended_by], [items, 'limit'])
    }
  })

  it('is no limit if the last page just fits', async () => {
    const three: Answer = (url) => ({
      body: Number(url.searchParams.get('page')) > 3 ? [] : [1, calls.length],
    })
    const output = await read({ page: {}, max: 6, max_pages: 4 }, three)
    deepEqual([(output.items as []).length, output.ended_by], [6, 'end'])
  })

  it('finds a page that was read before', async () => {
    const loops: [object, Answer][] = [
      [{ link_header: 'next' }, () => ({ body: [1], headers: { link: `<${URL_}>; rel=next` } })],
      [{ next: 'body.n', items: 'body.d' }, () => ({ body: { n: `/p?x=${calls.length % 3}`, d: [] } })],
      [{ cursor: { path: 'body.n', parameter: 'c' }, items: 'body.d' }, () => ({ body: { n: 'a', d: [1] } })],
      [{ page: {} }, () => ({ body: [1, 2] })],
    ]
    for (const [paginate, answer] of loops) {
      calls = []
      equal((await failed(paginate, answer))[0], 'paginate_loop', JSON.stringify(paginate))
      ok(calls.length <= 5)
    }
  })

  it('calls no other origin than the first one, to which its credentials belong', async () => {
    for (const link of [
      'https://evil.example.org/things',
      'http://api.example.com/things?page=2',
      'https://api.example.com:8443/things',
      '//evil.example.org/things',
      'https://api.example.com@evil.example.org/',
      'file:///etc/passwd',
    ]) {
      calls = []
      const answer: Answer = () => ({ body: [1], headers: { link: `<${link}>; rel=next` } })
      const [code, message] = await failed(
        { link_header: 'next' },
        answer,
        {
          headers: { authorization: 'Bearer {{ secrets.key }}' },
        },
        { secrets: { key: 'a-long-secret-value' } },
      )
      equal(code, 'paginate_host', link)
      match(message, /from https:\/\/api\.example\.com to .*: follow the pages with `cursor` or `page`/)
      deepEqual(calls, [URL_])
    }
  })

  it('puts a secret of the query back into a link that repeats it', async () => {
    const scope = { secrets: { key: 'a-long-secret-value' } }
    const config = { query: { key: '{{ secrets.key }}' } }
    const masked = (place: string) => ({ body: { n: calls.length > 1 ? null : place, d: [calls.length] } })
    await read({ next: 'body.n', items: 'body.d' }, () => masked('/t?key=[masked]&page=2'), config, scope)
    equal(calls[1], 'https://api.example.com/t?key=a-long-secret-value&page=2')
    calls = []
    const [code, message] = await failed(
      { next: 'body.n', items: 'body.d' },
      () => masked('/t/[masked]?page=2'),
      config,
      scope,
    )
    equal(code, 'paginate_path')
    match(message, /send the secret as a header/)
  })

  it('says which path the answer lacks', async () => {
    const [code, message] = await failed({ page: {}, items: 'body.itms' }, () => ({
      body: { items: [], n: 1 },
    }))
    equal(code, 'paginate_path')
    match(message, /body\.itms of the answer is no list: body has items, n/)
    const near = await failed(
      { cursor: { path: 'body.nextCursor', parameter: 'c' }, items: 'body.d' },
      () => ({ body: { next_cursor: 'a', d: [1] } }),
    )
    match(near.join(), /paginate_path,.*did you mean body\.next_cursor/)
    const object = await failed({ next: 'body.next', items: 'body.d' }, () => ({ body: { next: {}, d: [] } }))
    match(object.join(), /paginate_path,.*must be a text or a number/)
  })

  it('checks the schema on each page, and fails with its status', async () => {
    const output_schema = { type: 'array', items: { type: 'number' } }
    const [code] = await failed(
      { page: {} },
      (url) => ({ body: url.searchParams.get('page') === '2' ? ['x'] : [1] }),
      {
        output_schema,
      },
    )
    equal(code, 'output_invalid')
    equal((await failed({ page: {} }, () => ({ status: 404 })))[0], 'unexpected_status')
  })
})

describe('findings about paginate', () => {
  const found = (config: object, after: object = {}) =>
    validateSpec(
      JSON.stringify({
        name: 'T',
        nodes: { a: { type: 'api_request', config: { url: URL_, ...config } }, ...after },
      }),
      catalogue,
    ).result.errors.map(({ code, message, path, hint }) => `${code} ${path} ${message} ${hint}`)
  const output_schema = {
    type: 'object',
    properties: {
      data: { type: 'array', items: { type: 'object', properties: { email: { type: 'string' } } } },
      next: { type: 'string' },
    },
  }
  const next = 'body.next'
  const good = { paginate: { next, items: 'body.data' }, output_schema }

  it('has none for what is right, and types the items and the page', () => {
    deepEqual(found({ ...good, until: '{{ page.body.next == "" }}' }), [])
    const b = (text: string) => ({ b: { type: 'set_fields', config: { fields: { x: text } } } })
    deepEqual(found(good, b('{{ nodes.a.output.items[0].email }}')), [])
    match(found(good, b('{{ nodes.a.output.items[0].emial }}')).join(), /unknown_field .*email/)
    match(found(good, b('{{ nodes.a.output.body }}')).join(), /unknown_field .*items, pages, ended_by/)
    match(found({ ...good, until: '{{ page.body.nxt == "" }}' }).join(), /unknown_field .*next/)
    match(found({ ...good, until: '{{ secrets.x == "" }}' }).join(), /root_not_available/)
  })

  const wrong: [object, RegExp][] = [
    [
      { paginate: { next }, method: 'POST' },
      /invalid_value .*config\/method paginate reads with GET only.*repeat/,
    ],
    [{ paginate: { next }, response: 'file' }, /invalid_value .*a file has no pages/],
    [{ paginate: { next }, body: 'x' }, /paginate sends no body/],
    [{ until: '{{ page.body.x }}' }, /config\/until .*`paginate`, which is missing/],
    [{ paginate: { next }, until: 'true' }, /until has no placeholder/],
    [{ paginate: {} }, /does not say how.*write one of `link_header: next`/],
    [{ paginate: { next, page: {} } }, /paginate has next and page: it takes one/],
    [{ paginate: { next: 'links.next' } }, /invalid_config .*begins with body or headers/],
    [{ paginate: { page: {}, max_pages: 1_001 } }, /invalid_config .*max_pages/],
    [
      { output_schema, paginate: { next: 'body.nxt', items: 'body.data' } },
      /unknown_field .*paginate\/next .*body has data, next/,
    ],
    [{ output_schema, paginate: { next, items: 'body.dta' } }, /unknown_field .*paginate\/items/],
  ]
  for (const [config, finding] of wrong)
    it(`finds ${JSON.stringify(config).slice(0, 90)}`, () => match(found(config).join('\n'), finding))
})
