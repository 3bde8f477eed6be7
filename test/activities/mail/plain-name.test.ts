import { equal } from 'node:assert/strict'
import { plainName } from '../../../activities/mail/plain-name.ts'

describe('a name in a mail', () => {
  for (const [name, plain] of [
    ['Acme Inc.', 'Acme Inc.'],
    ['Müller & Söhne GmbH', 'Müller & Söhne GmbH'],
    ['Acme\r\nBcc: eve@example.com', 'Acme Bcc eve example com'],
    ['You won! https://evil.example.com/x', 'You won! https evil example com x'],
    ['www.evil.com', 'www evil com'],
    ['abc\u202ecba <x@y.z>', 'abc cba x y z'],
  ] as const)
    it(`is one line without a URL or an address: ${JSON.stringify(name)}`, () =>
      equal(plainName(name), plain))
})
