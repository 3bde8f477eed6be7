import assert from 'node:assert/strict'
import { once } from 'node:events'
import { request as open } from 'node:http'
import { formOf, textOf, type Visitor, visit, visitWith } from '../../support/console.ts'
import { until } from '../../support/until.ts'
import { withApiAndWorker } from '../../support/with-api.ts'

const EVIL = `<script>alert(1)</script>"'><img src=x onerror=alert(2)>`

describe('imports and exports in the console', () => {
  const suite = withApiAndWorker()
  let owner: Visitor
  let member: Visitor

  before(async () => {
    owner = await visit(suite.db, suite.api)
    member = await visit(suite.db, suite.api, 'member')
  })

  const untilShown = (path: string, pattern: RegExp): Promise<string> =>
    until(
      async () => {
        const { html } = await owner.get(path)
        return pattern.test(html) && html
      },
      async () => `${pattern} at ${path}: ${textOf((await owner.get(path)).html)}`,
    )
  const begin = async (csv: string, fields: Record<string, string> = {}) => {
    const { html } = await owner.get('/imports/new?entity=contacts')
    return owner.upload('/imports', { ...formOf(html, '/imports'), ...fields }, csv)
  }
  const contacts = async (email: string) =>
    (await suite.api.request('GET', `/v1/objects/contacts?email=${encodeURIComponent(email)}`)).body.data

  it('read a file, show what its columns mean, try it, write it, and take it back', async () => {
    const csv = `First name,E-mail,Lead Status,Number\nAda,ada@import.example,new,1\n${EVIL.replaceAll('"', '""').replace(/^/, '"')}",not an email,new,2\nGrace,grace@import.example,Hot,3\n`
    const begun = await begin(csv)
    assert.match(begun.location ?? textOf(begun.html), /^\/imports\/[0-9a-f-]{36}$/)
    const path = begun.location!
    const shown = await owner.get(path)
    assert.doesNotMatch(shown.html, /<script>alert|<img/)
    const form = formOf(shown.html, `${path}/start`)
    assert.deepEqual(
      [form['field.0'], form['field.1'], form['field.2'], form['field.3']],
      ['first_name', 'email', 'lead_status', 'custom_fields.number'],
    )
    const hot = Object.keys(form).find((name) => name.startsWith('value.2.') && form[name] === 'Hot')!
    const typed = { ...form, 'field.3': 'nothing_such', [hot.replace('value', 'means')]: 'open' }
    const refused = await owner.post(`${path}/start`, { ...typed, do: 'try' })
    assert.equal(refused.status, 422)
    assert.match(refused.html, /Number: /)
    const again = formOf(refused.html, `${path}/start`)
    assert.equal(again[hot.replace('value', 'means')], 'open')
    const tried = await owner.post(`${path}/start`, { ...again, 'field.3': '', do: 'try' })
    assert.equal(tried.location, path, textOf(tried.html))
    const trial = await untilShown(path, /Trial: nothing was written[\s\S]*completed|completed[\s\S]*Trial/)
    assert.match(trial, /What the first rows would change/)
    assert.deepEqual(await contacts('ada@import.example'), [])
    const { 'field.3': field } = formOf(trial, `${path}/start`)
    assert.equal(field, '')
    const started = await owner.post(`${path}/start`, { ...formOf(trial, `${path}/start`), do: 'start' })
    assert.equal(started.location, path, textOf(started.html))
    const ended = await untilShown(path, /completed[\s\S]*Undo…/)
    const [grace] = await contacts('grace@import.example')
    assert.equal(grace.lead_status, 'open')
    const [, errors] = /href="(\/app\/v1\/imports\/[^"]*\/errors)"/.exec(ended)!
    assert.match((await owner.get(errors!)).html, /not an email/)
    assert.doesNotMatch(ended, /action="[^"]*\/start"/)
    const preview = await owner.submit(path, `${path}/undo`, {})
    assert.match(textOf(preview.html), /Records to delete 2/)
    const undone = await owner.post(`${path}/undo`, { ...formOf(preview.html, `${path}/undo`), do: 'undo' })
    assert.equal(undone.location, `${path}?done=undone`, textOf(undone.html))
    await until(
      async () => (await contacts('ada@import.example')).length === 0,
      () => 'the undo deletes the contact',
    )
    assert.match((await owner.get('/imports')).html, new RegExp(`href="${path}"`))
  })

  it('pass a large file on', async () => {
    const rows = Array.from(
      { length: 60_000 },
      (_, i) => `Person ${i},person${i}@large.example,${'x'.repeat(60)}`,
    )
    const { location, html } = await begin(`first_name,email,job_title\n${rows.join('\n')}\n`)
    assert.ok(location, textOf(html))
    assert.match((await owner.get(location!)).html, /Import 60,000 rows/)
  })

  it('say what is wrong with a file, and take another one', async () => {
    const refused = await begin('')
    assert.ok(refused.status >= 400 && refused.status < 500, String(refused.status))
    const [, action] = /action="(\/imports\/[^"]*\/file)"/.exec(refused.html)!
    const taken = await owner.upload(action!, formOf(refused.html, action!), 'email\na@b.example\n')
    assert.equal(taken.location, action!.replace('/file', ''), textOf(taken.html))
    const none = await owner.post(action!, formOf(refused.html, action!))
    assert.equal(none.status, 422)
    assert.match(none.html, /Choose a file/)
  })

  it('keep the choices of a refused beginning', async () => {
    const { status, html } = await begin('email\n', { mode: 'upsert', by: 'shoe_size' })
    assert.equal(status, 422)
    assert.match(html, /value="shoe_size"/)
    assert.match(html, /href="#f-by"/)
  })

  it('are not begun by another session or another site', async () => {
    const stale = await owner.upload('/imports', { entity: 'contacts', csrf_token: 'x' }, 'email\n')
    assert.match(stale.html, /Nothing you typed is lost/)
    const body = new FormData()
    body.append('csrf_token', owner.headers['X-CSRF-Token']!)
    body.append('file', new Blob(['email\n']), 'x.csv')
    const headers = { Cookie: owner.headers.Cookie!, 'Sec-Fetch-Site': 'cross-site' }
    const foreign = await fetch(`${suite.api.url}/imports`, { method: 'POST', body, headers })
    assert.equal(foreign.status, 403)
  })

  it('are not read without a session: their form is opened again after the sign-in', async () => {
    const ended = visitWith(suite.api, { Cookie: 'agx_session=ended' })
    for (const [action, form] of [
      ['/imports', '/imports/new'],
      ['/imports/some/file', '/imports/some'],
      ['/knowledge/collections/some/upload', '/knowledge/collections/some/documents/new?from=file'],
    ] as const) {
      const { status, location } = await ended.upload(action, {}, 'email\n')
      assert.deepEqual([status, location], [303, `/sign-in?next=${encodeURIComponent(form)}`], action)
    }
    const unended = open(`${suite.api.url}/imports`, {
      method: 'POST',
      headers: { 'Content-Type': 'multipart/form-data; boundary=x', 'Sec-Fetch-Site': 'same-origin' },
    })
    unended.write('--x\r\nContent-Disposition: form-data; name="a"\r\n\r\n')
    const [answer] = await once(unended, 'response')
    assert.equal(answer.statusCode, 303, 'before the form has ended')
    unended.on('error', () => {}).destroy()
  })

  it('export what a list shows', async () => {
    await suite.api.request('POST', '/v1/objects/companies', {
      body: { name: 'Exported', industry: 'Tools' },
    })
    await suite.api.request('POST', '/v1/objects/companies', { body: { name: 'Other' } })
    const list = '/records/companies?industry=Tools&sort=name&order=asc'
    const made = await member.submit(list, '/exports', {})
    assert.equal(made.location, '/exports?done=exporting', textOf(made.html))
    const html = await untilShown('/exports', /href="\/app\/v1\/exports\/[^"]*\/file"/)
    const [, file] = /href="(\/app\/v1\/exports\/[^"]*\/file)"/.exec(html)!
    const { html: csv } = await member.get(file!)
    assert.match(csv, /Exported/)
    assert.doesNotMatch(csv, /Other/)
    const refused = await owner.submit('/exports/new', '/exports', { query: 'nothing_such: 1' })
    assert.equal(refused.status, 422)
    assert.match(refused.html, /nothing_such/)
  })
})
