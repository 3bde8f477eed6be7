import assert from 'node:assert/strict'
import fc from 'fast-check'
import { credentialIn, maskText } from '../../../workflows/shared/credentials.ts'

/** Parts are joined here, so that no scanner takes this file for a leak. */
const join = (...parts: string[]) => parts.join('')
const alphanumeric = 'aB3dE5gH7jK9mN1pQ2sT4vW6yZ8bC0dF2hJ4'

const KEYS: [what: string, key: string][] = [
  ['a key of this API', join('agx', '_', alphanumeric, '123456')],
  ['a webhook secret', join('whsec', '_', alphanumeric)],
  ['a Stripe key', join('sk', '_live_', alphanumeric)],
  ['a Stripe key', join('rk', '_test_', alphanumeric)],
  ['a GitHub token', join('gh', 'p_', alphanumeric)],
  ['a GitHub token', join('github', '_pat_', alphanumeric)],
  ['a GitLab token', join('glp', 'at-', alphanumeric)],
  ['a Slack token', join('xox', 'b-123456789012-', alphanumeric)],
  ['the URL of a Slack webhook', join('https://hooks.slack.com/', 'services/T0001/B0002/', alphanumeric)],
  ['an AWS access key', join('AK', 'IA', 'IOSFODNN7EXAMPLE')],
  ['a Google API key', join('AI', 'za', alphanumeric.slice(0, 35))],
  ['an OpenAI or Anthropic key', join('sk', '-proj-', alphanumeric)],
  ['an OpenAI or Anthropic key', join('sk', '-ant-', alphanumeric)],
  ['a SendGrid key', join('SG', '.', alphanumeric.slice(0, 22), '.', alphanumeric)],
  ['an npm token', join('npm', '_', alphanumeric)],
  ['a HubSpot token', join('pat', '-na1-', '01234567-89ab-cdef-0123-456789abcdef')],
  ['a Shopify token', join('shp', 'at_', '0123456789abcdef0123456789abcdef')],
  [
    'the token of a Telegram bot',
    join('https://api.telegram.org/bot', '123456789:', alphanumeric.slice(0, 35)),
  ],
  [
    'a JSON Web Token',
    join('ey', 'JhbGciOiJIUzI1NiJ9', '.ey', 'JzdWIiOiIxMjM0NTY3ODkwIn0', '.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9P'),
  ],
  [
    'a private key',
    join('-----BEGIN RSA ', 'PRIVATE KEY-----\n', alphanumeric, '\n-----END RSA PRIVATE KEY-----'),
  ],
]

/** The last characters of the secret. */
const endOf = (key: string) => key.replace(/\n-----END.*/, '').slice(-20)

const NAMED: [text: string, name: string | undefined, what: string][] = [
  ['Bearer hunter2', 'Authorization', 'Bearer credentials'],
  ['bearer abcdef123456', 'X-Forwarded-Auth', 'Bearer credentials'],
  ['Token 9944b09199c62bcf', 'Authorization', 'Token credentials'],
  ['Basic dXNlcjpwYXNz', 'Authorization', 'Basic credentials'],
  ['hunter2!', 'Authorization', 'a value of Authorization'],
  ['hunter2', 'password', 'a value of password'],
  ['0123456789abcdef', 'X-Api-Key', 'a value of X-Api-Key'],
  ['abcdefghijklmnopqrstuvwxyzabcdef', 'api_key', 'a value of api_key'],
  ['session=0f4e2a1b', 'Cookie', 'a value of Cookie'],
  ['https://ada:hunter2@x.test/', 'url', 'a password in a URL'],
  ['https://ada:hunt@er2@x.test/', 'url', 'a password in a URL'],
  ['https://x.test/?page=2&access_token=abc12345', 'url', 'a value of access_token'],
  ['https://x.test/?access%5Ftoken=abc12345', 'url', 'a value of access_token'],
  ['https://x.test/cb?code=4/0AbCdEf12', 'url', 'a value of code'],
  ['https://x.test/file?sp=r&sig=AbC1%2FdEf2', 'url', 'a value of sig'],
  ['abcdef12345', 'X-Auth', 'a value of X-Auth'],
  ['grant_type=password&client_secret=hunter2', 'body', 'a value of client_secret'],
  ['Server=x;Password=hunter2;Database=y', 'text', 'a value of Password'],
  ['{"user": "ada", "password": "hunter2"}', 'body', 'a value of password'],
  ['Bearer hunter2', undefined, 'Bearer credentials'],
]

const INNOCENT: [text: string, name: string | undefined][] = [
  ['Bearer {{ inputs.token }}', 'Authorization'],
  ['Bearer {{inputs.token | strip}}', 'Authorization'],
  ['{{ inputs.user }}:{{ inputs.password }}', 'password'],
  ['https://x.test/?token={{ inputs.token }}', 'url'],
  ['https://{{ inputs.user }}:{{ inputs.password }}@x.test/', 'url'],
  ['https://user:password@x.test/', 'url'],
  ['https://x.test:8080/a@b', 'url'],
  ['Bearer token', 'Authorization'],
  ['Bearer <your token>', 'Authorization'],
  ['Basic information', 'title'],
  ['Basic support', 'Authorization'],
  ['Token ring networks are old', 'text'],
  ['none', 'Authorization'],
  ['YOUR_API_KEY', 'X-Api-Key'],
  ['<api-key>', 'X-Api-Key'],
  ['$API_KEY_2', 'X-Api-Key'],
  ['********', 'password'],
  ['[masked]', 'password'],
  ['created_at', 'sort_key'],
  ['12345678', 'page_token'],
  ['2026-01-01', 'partition_key'],
  ['lang=de; theme=dark', 'Cookie'],
  ['https://x.test/oauth2/token', 'token_url'],
  ['/oauth/token', 'token_path'],
  ['ada@example.com', 'password_recovery'],
  ['https://x.test/?code=CH', 'url'],
  ['https://x.test/?code={{ inputs.code }}', 'url'],
  ['CH12345678', 'code'],
  ['Ada Lovelace 1815', 'author'],
  ['hunter2', 'name'],
  ['hunter2', undefined],
  ['password: please choose a new one', 'text'],
  ['The key is under the mat', 'text'],
  ['sort_key=created_at&token=next', 'body'],
  ['{"password": "{{ inputs.password }}"}', 'body'],
  ['ask-for-a-skilled-skier-in-january', 'text'],
  ['class sk-spinner-double-bounce-child', 'text'],
  ['agx_contacts and agx_organization', 'text'],
  ['eyJ is how a token starts', 'text'],
  ['Akiane painted', 'text'],
]

describe('credentials', () => {
  for (const [what, key] of KEYS)
    it(`include ${what}: ${key.slice(0, 12)}…`, () => {
      for (const text of [key, `Use ${key}, please`, `{"a":"${key}"}`]) {
        assert.equal(credentialIn(text), what)
        assert.ok(!maskText(text).includes(endOf(key)), maskText(text))
        assert.match(maskText(text), /\[masked\]/)
      }
    })

  for (const [text, name, what] of NAMED)
    it(`include ${JSON.stringify(text)} as ${name}`, () => assert.equal(credentialIn(text, name), what))

  for (const [text, name] of INNOCENT)
    it(`do not include ${JSON.stringify(text)} as ${name}`, () =>
      assert.equal(credentialIn(text, name), undefined))

  it('are masked in texts, and nothing else is', () => {
    const masked: [text: string, expected: string][] = [
      ['Bearer hunter2', 'Bearer [masked]'],
      ['user=ada&password=hunter2&x=1', 'user=ada&password=[masked]&x=1'],
      ['{"user":"ada","password":"hun\\"ter2","x":1}', '{"user":"ada","password":"[masked]","x":1}'],
      ['https://ada:hunt@er2@x.test/a?b=c', 'https://ada:[masked]@x.test/a?b=c'],
      [
        'https://x.test/cb?state=1&code=4%2F0Ab&sig=x%2By#a',
        'https://x.test/cb?state=1&code=[masked]&sig=[masked]#a',
      ],
      [
        'see https://x.test/?code=abc, or /cb#code=abc',
        'see https://x.test/?code=[masked] or /cb#code=[masked]',
      ],
      ['country=CH&code=12', 'country=CH&code=12'],
      ['{"code":"CH","sig":"abc"}', '{"code":"CH","sig":"[masked]"}'],
      ['Basic information about tokens', 'Basic information about tokens'],
    ]
    for (const [text, expected] of masked) assert.equal(maskText(text), expected)
  })

  it('do not include words, and sentences and placeholders of them, under any name', () => {
    const word = fc.stringMatching(/^[a-z]{1,12}$/)
    const text = fc.array(word, { minLength: 1, maxLength: 8 }).map((words) => words.join(' '))
    const placeholder = fc
      .array(word, { minLength: 1, maxLength: 3 })
      .map((path) => `{{ inputs.${path.join('.')} }}`)
    const name = fc.constantFrom(
      'Authorization',
      'X-Api-Key',
      'password',
      'Cookie',
      'token',
      'title',
      'url',
      undefined,
    )
    const scheme = fc.constantFrom('', 'Bearer ', 'Token ', 'https://x.test/?token=')
    fc.assert(
      fc.property(scheme, fc.oneof(text, placeholder), name, (start, end, name) => {
        assert.equal(credentialIn(start + end, name), undefined)
      }),
    )
  })

  it('are found and masked wherever a key is in a text', () => {
    const words = fc.array(fc.stringMatching(/^[a-z]{1,12}$/), { maxLength: 5 }).map((all) => all.join(' '))
    fc.assert(
      fc.property(words, fc.constantFrom(...KEYS), words, (before, [what, key], after) => {
        const text = `${before} ${key} ${after}`
        assert.equal(credentialIn(text), what)
        assert.ok(!maskText(text).includes(endOf(key)))
      }),
    )
  })

  it('are looked for in linear time', () => {
    for (const piece of [
      'a',
      'a=',
      '"',
      '"a":"',
      '://',
      '://a:',
      'eyJ',
      'sk-',
      ' ',
      '@',
      '\\',
      'a,',
      'sk-1',
      'a?',
      'a?b=',
      'a?b=c&',
      'a#',
      '-----BEGIN ',
    ]) {
      const text = piece.repeat((1024 * 1024) / piece.length)
      maskText(text)
      credentialIn(text, 'password')
    }
  })
})
