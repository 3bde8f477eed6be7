import { equal } from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import { verify } from '../../../api/incoming/verify.ts'
import { SENDERS } from '../../../db/model/incoming/mapping/senders/index.ts'

const verdict = (
  sender: string,
  secret: string,
  body: string,
  headers: Record<string, string>,
  { url = 'https://agx.example/webhooks/incoming/1', now = Date.now() } = {},
) => {
  const { verification } = SENDERS.get(sender)!
  return verify(verification, { method: 'POST', url, headers }, Buffer.from(body), [secret], now)
}
const mac = (
  algorithm: string,
  secret: string,
  text: string,
  encoding: 'hex' | 'base64' | 'base64url' = 'hex',
) => createHmac(algorithm, secret).update(text).digest(encoding)

describe('the signature that a sender documents', () => {
  it('of Square is over its URL and the body, as in the test of its libraries', () => {
    const body =
      '{"merchant_id":"MLEFBHHSJGVHD","type":"webhooks.test_notification","event_id":"ac3ac95b-f97d-458c-a6e6-18981597e05f","created_at":"2022-07-13T20:30:59.037339943Z","data":{"type":"webhooks","id":"bc368e64-01aa-407e-b46e-3231809b1129"}}'
    const headers = { 'x-square-hmacsha256-signature': 'GF4YkrJgGBDZ9NIYbNXBnMzqb2HoL4RW/S6vkZ9/2N4=' }
    const key = 'Ibxx_5AKakO-3qeNVR61Dw'
    const url = 'https://webhook.site/679a4f3a-dcfa-49ee-bac5-9d0edad886b9'
    equal(verdict('square', key, body, headers, { url }), 'verified')
    equal(verdict('square', key, `${body} `, headers, { url }), 'wrong')
    equal(verdict('square', key, body, headers, { url: `${url}?a=1` }), 'wrong')
    equal(verdict('square', 'another-key', body, headers, { url }), 'wrong')
    equal(verdict('square', key, body, {}, { url }), 'missing')
  })

  it('of Customer.io is over v0, the time and the body', () => {
    const now = 1_613_063_089_000
    const body = '{"metric":"sent"}'
    const signed = (time: number) => ({
      'x-cio-timestamp': String(time),
      'x-cio-signature': mac('sha256', 'key', `v0:${time}:${body}`),
    })
    equal(verdict('customer.io', 'key', body, signed(now / 1000), { now }), 'verified')
    equal(verdict('customer.io', 'key', body, signed(now / 1000 - 301), { now }), 'stale')
    equal(verdict('customer.io', 'key', `${body} `, signed(now / 1000), { now }), 'wrong')
    const moved = { ...signed(now / 1000), 'x-cio-timestamp': String(now / 1000 + 1) }
    equal(verdict('customer.io', 'key', body, moved, { now }), 'wrong')
    equal(verdict('customer.io', 'key', body, {}, { now }), 'missing')
  })

  it('of Chatwoot is over the time and the body', () => {
    const now = 1_764_200_000_000
    const body = '{"event":"contact_created"}'
    const signed = (time: number) => ({
      'x-chatwoot-timestamp': String(time),
      'x-chatwoot-signature': `sha256=${mac('sha256', 'key', `${time}.${body}`)}`,
    })
    equal(verdict('chatwoot', 'key', body, signed(now / 1000), { now }), 'verified')
    equal(verdict('chatwoot', 'key', body, signed(now / 1000 - 301), { now }), 'stale')
    equal(verdict('chatwoot', 'key', `${body} `, signed(now / 1000), { now }), 'wrong')
    const moved = { ...signed(now / 1000), 'x-chatwoot-timestamp': String(now / 1000 + 1) }
    equal(verdict('chatwoot', 'key', body, moved, { now }), 'wrong')
    equal(verdict('chatwoot', 'key', body, {}, { now }), 'missing')
  })

  it('of Dropbox Sign is over the time and the type of the event, as in the example of its libraries', () => {
    const key = '324e3b0840f065eb51f3fd63231d0d33daa35d4ed10d27718839e81737065782'
    const event = {
      event_type: 'account_confirmed',
      event_time: '1669926463',
      event_hash: 'ff8b03439122f9160500c3fb855bdee5a9ccba5fff27d3b258745d8f3074832f',
    }
    const type = { 'content-type': 'multipart/form-data; boundary=b' }
    const form = (changes: object) =>
      `--b\r\nContent-Disposition: form-data; name="json"\r\n\r\n${JSON.stringify({ event: { ...event, ...changes } })}\r\n--b--\r\n`
    const now = 1_669_926_463_000
    equal(verdict('dropbox_sign', key, form({}), type, { now }), 'verified')
    // It repeats an event for about three days.
    equal(verdict('dropbox_sign', key, form({}), type, { now: now + 3 * 86_400_000 }), 'verified')
    equal(verdict('dropbox_sign', key, form({}), type, { now: now + 5 * 86_400_000 }), 'stale')
    equal(verdict('dropbox_sign', 'other', form({}), type, { now }), 'wrong')
    equal(verdict('dropbox_sign', key, form({ event_type: 'account_deleted' }), type, { now }), 'wrong')
    equal(verdict('dropbox_sign', key, form({ event_time: '1669926464' }), type, { now }), 'wrong')
    for (const none of [form({ event_hash: undefined }), form({ event_time: '16699264631' }), '--b--', 'x'])
      equal(verdict('dropbox_sign', key, none, type, { now }), 'missing', none)
    equal(verdict('dropbox_sign', key, form({}), {}, { now }), 'missing', 'no form')
  })

  it('of Close is over the time and the body, by a key in hexadecimal', () => {
    const now = 1_764_200_000_000
    const body = '{"event":{"id":"ev_1"}}'
    const key = 'ab'.repeat(32)
    const signed = (time: number, by: string | Buffer = Buffer.from(key, 'hex')) => ({
      'close-sig-timestamp': String(time),
      'close-sig-hash': createHmac('sha256', by).update(`${time}${body}`).digest('hex'),
    })
    equal(verdict('close', key, body, signed(now / 1000), { now }), 'verified')
    equal(verdict('close', key, body, signed(now / 1000 - 301), { now }), 'stale')
    equal(verdict('close', key, `${body} `, signed(now / 1000), { now }), 'wrong')
    equal(verdict('close', key, body, signed(now / 1000, key), { now }), 'wrong')
    equal(verdict('close', key, body, {}, { now }), 'missing')
    // No text that is none may stand for an empty key.
    equal(verdict('close', 'whsec_no hexadecimal', body, signed(now / 1000, ''), { now }), 'wrong')
  })

  it('of PandaDoc is in the URL, beside other parameters', () => {
    const body = '[{"event":"document_updated"}]'
    const signature = mac('sha256', 'shared-key', body)
    const at = (query: string) => ({ url: `https://agx.example/webhooks/incoming/1${query}` })
    for (const query of [`?signature=${signature}`, `?a=b&signature=${signature}`])
      equal(verdict('pandadoc', 'shared-key', body, {}, at(query)), 'verified', query)
    equal(verdict('pandadoc', 'shared-key', `${body} `, {}, at(`?signature=${signature}`)), 'wrong')
    equal(verdict('pandadoc', 'other', body, {}, at(`?signature=${signature}`)), 'wrong')
    for (const query of ['', '?signature=', `?mysignature=${signature}`])
      equal(verdict('pandadoc', 'shared-key', body, {}, at(query)), 'missing', query)
  })

  it('of Dialpad is that of the token which is its body, by HS256 only', () => {
    const head = Buffer.from('{"alg":"HS256","typ":"JWT"}').toString('base64url')
    const payload = Buffer.from('{"call_id":1}').toString('base64url')
    const signature = mac('sha256', 'secret', `${head}.${payload}`, 'base64url')
    const body = `${head}.${payload}.${signature}`
    equal(verdict('dialpad', 'secret', body, {}), 'verified')
    equal(verdict('dialpad', 'other', body, {}), 'wrong')
    const none = Buffer.from('{"alg":"none"}').toString('base64url')
    equal(verdict('dialpad', 'secret', `${none}.${payload}.${signature}`, {}), 'wrong')
    for (const other of [`${none}.${payload}.`, '{"call_id":1}', '', `${body} `, `${body}.x`])
      equal(verdict('dialpad', 'secret', other, {}), 'missing', other)
  })

  it('of Segment is the SHA-1 of the body in hex', () => {
    const body = '{"type":"identify","messageId":"m-1"}'
    equal(verdict('segment', 'shared', body, { 'x-signature': mac('sha1', 'shared', body) }), 'verified')
    for (const wrong of [mac('sha256', 'shared', body), mac('sha1', 'other', body)])
      equal(verdict('segment', 'shared', body, { 'x-signature': wrong }), 'wrong')
    equal(verdict('segment', 'shared', body, {}), 'missing')
  })

  it('of LinkedIn is over the body with its prefix, which may stand in the header', () => {
    const body = '{"type":"LEAD_ACTION"}'
    const signed = mac('sha256', 'client-secret', `hmacsha256=${body}`)
    for (const given of [
      signed,
      `hmacsha256=${signed}`,
      `hmacsha256=${mac('sha256', 'client-secret', body)}`,
    ])
      equal(verdict('linkedin', 'client-secret', body, { 'x-li-signature': given }), 'verified', given)
    for (const given of [mac('sha256', 'other', body), 'hmacsha256=', signed.slice(1)])
      equal(
        verdict('linkedin', 'client-secret', body, { 'x-li-signature': given }),
        given === 'hmacsha256=' ? 'missing' : 'wrong',
      )
    equal(verdict('linkedin', 'client-secret', `${body} `, { 'x-li-signature': signed }), 'wrong')
    equal(verdict('linkedin', 'client-secret', body, {}), 'missing')
  })
})
