import assert from 'node:assert/strict'
import fc from 'fast-check'
import { Router } from '../../../api/http/router.ts'

describe('finding a route', () => {
  const paths = [
    '/runs',
    '/runs/{run_id}',
    '/runs/{run_id}/cancel',
    '/runs/active',
    '/{entity}/all',
    '/runs/active/{x}',
  ]

  it('prefers literal segments in any order of the table, and backtracks if they do not match', () => {
    fc.assert(
      fc.property(fc.shuffledSubarray(paths, { minLength: paths.length }), (order) => {
        const router = new Router<string>()
        for (const path of order) router.add('GET', path, path)
        const at = (path: string) => {
          const match = router.match('GET', path)
          return match?.found ? [match.value, match.params] : undefined
        }
        assert.deepEqual(at('/runs/active'), ['/runs/active', {}])
        assert.deepEqual(at('/runs/7'), ['/runs/{run_id}', { run_id: '7' }])
        assert.deepEqual(at('/runs/active/cancel'), ['/runs/active/{x}', { x: 'cancel' }])
        assert.deepEqual(at('/runs/all'), ['/runs/{run_id}', { run_id: 'all' }])
        assert.deepEqual(at('/deals/all'), ['/{entity}/all', { entity: 'deals' }])
        for (const path of ['/', '', '/runs/', '/runs//cancel', '//all', '/deals', '/runs/7/cancel/'])
          assert.equal(at(path), undefined, path)
      }),
    )
  })

  it('names an enumerated segment with an unknown value, for any method', () => {
    const router = new Router<string>()
    router.add('GET', '/{kind}/{id}/{part}', 'part', { kind: ['a', 'b'], part: ['x'] })
    router.add('GET', '/a/{id}/log', 'log')
    const at = (method: string, path: string) => {
      const match = router.match(method, path)
      return match?.found ? match.value : match
    }
    assert.equal(at('GET', '/b/1/x'), 'part')
    assert.equal(at('GET', '/a/1/log'), 'log')
    for (const method of ['GET', 'PUT']) {
      assert.deepEqual(at(method, '/c/1/x'), {
        found: false,
        unknown: { name: 'kind', accepted: ['a', 'b'] },
      })
      assert.deepEqual(at(method, '/b/1/log'), { found: false, unknown: { name: 'part', accepted: ['x'] } })
    }
    assert.deepEqual(at('PUT', '/b/1/x'), { found: false, allowed: ['GET'] })
  })

  it('decodes a parameter exactly', () => {
    const router = new Router<string>()
    router.add('GET', '/x/{name}', '')
    fc.assert(
      fc.property(fc.string({ minLength: 1, unit: 'grapheme' }), (name) => {
        const match = router.match('GET', `/x/${encodeURIComponent(name)}`)
        if (/\p{Cc}/u.test(name)) assert.equal(match, undefined)
        else assert.deepEqual(match?.found && match.params, { name })
      }),
    )
  })

  it('refuses a duplicate route', () => {
    const router = new Router<string>()
    router.add('GET', '/x/{a}', '')
    assert.throws(() => router.add('GET', '/x/{b}', ''), /duplicate/)
  })
})
