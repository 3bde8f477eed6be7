import assert from 'node:assert/strict'
import {
  flawOfRedirectUri,
  isRegistered,
  receiverOf,
  withParameters,
} from '../../../../db/model/access/redirect-uris.ts'

describe('redirect URIs', () => {
  it('are https, a loopback address, or the scheme of a program', () => {
    for (const uri of [
      'https://claude.ai/api/mcp/auth_callback',
      'https://chatgpt.com/connector_platform_oauth_redirect?x=1',
      'http://localhost/callback',
      'http://127.0.0.1:1234/',
      'http://[::1]:1234/cb',
      'cursor://anysphere.cursor-retrieval/oauth/user-x/callback',
      'vscode://vscode.microsoft-authentication',
      'com.example.app:/oauth',
    ])
      assert.equal(flawOfRedirectUri(uri), undefined, uri)
    for (const uri of [
      'http://example.com/cb',
      'http://127.0.0.1.evil.example/cb',
      'http://localhost@evil.example/',
      'https://evil.example/#x',
      'https://ünicode.example/',
      'https://a;sandbox/',
      "https://a'b.example/",
      'https://a.example/ b',
      'javascript:alert(1)',
      'javascript.x:alert(1)//#',
      'intent://x',
      'search-ms:query=x',
      'about:blank',
      'callback',
      '',
    ])
      assert.ok(flawOfRedirectUri(uri), uri)
  })

  it('match exactly, except for the port of a loopback address', () => {
    const registered = ['https://a.example/cb', 'http://127.0.0.1/cb', 'http://[::1]:7/cb?x=1']
    for (const uri of [
      'https://a.example/cb',
      'http://127.0.0.1/cb',
      'http://127.0.0.1:65535/cb',
      'http://[::1]/cb?x=1',
      'http://[::1]:9/cb?x=1',
    ])
      assert.ok(isRegistered(uri, registered), uri)
    for (const uri of [
      'https://a.example:443/cb',
      'https://a.example:8443/cb',
      'https://A.example/cb',
      'https://a.example/cb/../cb',
      'http://localhost:1/cb',
      'http://127.0.0.1:1/cb/',
      'http://127.0.0.1:1/cb?x',
      'http://127.0.0.1:/cb',
      'http://127.0.0.1:99999/cb',
      'http://127.0.0.1:80@evil.example/cb',
      'http://[::1]:9/cb',
    ])
      assert.ok(!isRegistered(uri, registered), uri)
  })

  it('say who gets the code', () => {
    assert.deepEqual(receiverOf('https://claude.ai/cb'), { host: 'claude.ai', isLocal: false })
    assert.deepEqual(receiverOf('http://127.0.0.1:1/cb'), { host: '127.0.0.1', isLocal: true })
    assert.deepEqual(receiverOf('cursor://x/cb'), { host: 'cursor', isLocal: true })
  })

  it('get parameters after their own', () => {
    assert.equal(
      withParameters('https://a.example/cb?x=1', { code: 'a b', state: undefined }),
      'https://a.example/cb?x=1&code=a+b',
    )
    assert.equal(withParameters('cursor://x/cb', { code: '&' }), 'cursor://x/cb?code=%26')
  })
})
