import assert from 'node:assert/strict'
import axe from 'axe-core'
import type { Browser, BrowserContext, Page } from 'playwright-core'
import { createUser } from '../../../db/access/users.ts'
import { startBrowser } from '../../support/browser.ts'
import { startHttpServer } from '../../support/http-server.ts'
import { asking, authorizePath, newVerifier, registered } from '../../support/oauth.ts'
import { planted } from '../../support/planted.ts'
import { sessionHeaders } from '../../support/session.ts'
import { withApiAndWorker } from '../../support/with-api.ts'

const NODES = `
nodes:
  ask:
    type: approval
    config: {title: "Pay it?"}
`

describe('the console in a browser', () => {
  const suite = withApiAndWorker()
  const password = planted('correct horse battery staple')
  let browser: Browser
  let cookie: { name: string; value: string; url: string }
  /** What must not happen on any page. */
  const problems: string[] = []
  const paths: string[] = []

  before(async () => {
    browser = await startBrowser()
    const { Cookie } = await sessionHeaders(suite.db, suite.api, 'owner')
    const [name, value] = Cookie!.split('; ')[0]!.split('=')
    cookie = { name: name!, value: value!, url: suite.api.url }
    await createUser(suite.db.system, {
      password,
      organizationId: suite.api.organizationId,
      email: 'ada@example.com',
      name: 'Ada',
      role: 'owner',
    })
    paths.push(...(await pathsOfEveryKind()))
  })
  after(() => browser?.close())
  afterEach(() => assert.deepEqual(problems.splice(0), []))

  const request = async (method: string, path: string, body?: object) =>
    (await suite.api.request(method, path, body ? { body } : {})).body

  /** A page of each sort, with something on it. */
  async function pathsOfEveryKind() {
    const company = await request('POST', '/v1/objects/companies', {
      name: `${'A long name '.repeat(15)}👩‍🚀`,
    })
    const contact = await request('POST', '/v1/objects/contacts', {
      first_name: 'عبد الرحمن',
      email: 'someone@example.com',
      company_id: company.id,
      tags: ['vip'],
    })
    const twin = await request('POST', '/v1/objects/contacts', {
      first_name: 'عبد الرحمن',
      phone: '+41446681800',
    })
    const { workflow_id } = await request('POST', '/v1/workflows', { spec: `name: Pay${NODES}` })
    const { run_id } = await request('POST', `/v1/workflows/${workflow_id}/run`, { confirm: true })
    await request('POST', '/v1/objects/deals', {
      name: 'صفقة',
      stage: 'lead',
      amount: '12.50',
      company_id: company.id,
    })
    const planned = await request('POST', '/v1/imports', { entity: 'contacts' })
    await suite.api.request('PUT', `/v1/imports/${planned.id}/file`, {
      headers: { 'Content-Type': 'text/csv' },
      body: 'First name,Lead status,Born\nAda,Hot,10/12/1815\n',
    })
    const incoming = await request('POST', '/v1/webhooks/incoming', { name: 'Form' })
    const outgoing = await request('POST', '/v1/webhooks/outgoing', {
      name: 'Billing',
      url: 'https://example.com/hook',
      events: ['deal.won'],
    })
    const collection = await request('POST', '/v1/knowledge/collections', { name: 'Help center' })
    const document = await request('POST', `/v1/knowledge/collections/${collection.id}/documents`, {
      title: 'Payments',
      body: '# Refunds\n\nRefunds take five business days.',
      format: 'markdown',
      tags: ['billing'],
    })
    const report = await request('POST', '/v1/analytics/reports', {
      name: 'Meeting',
      charts: [
        { title: 'Runs', query: { metric: 'runs.count', interval: 'day', group_by: ['status'] } },
        { title: 'New contacts', query: { metric: 'contacts.created' } },
      ],
    })
    await request('POST', '/v1/custom-fields/contacts', {
      name: 'tier',
      type: 'select',
      label: 'Tier',
      options: ['gold', 'silver'],
    })
    const pipelines = await request('GET', '/v1/pipelines')
    const member = (await request('GET', '/v1/users')).data[0]
    return [
      '/',
      '/design',
      '/organizations',
      '/records/contacts',
      '/records/deals',
      '/records/deals/board',
      '/imports',
      '/imports/new',
      `/imports/${planned.id}`,
      '/exports',
      '/exports/new',
      '/search',
      '/search?q=name',
      '/records/contacts?first_name[contains]=x',
      `/records/contacts/${contact.id}`,
      `/records/contacts/${contact.id}/edit`,
      `/records/companies/${company.id}`,
      '/records/contacts/deleted',
      '/records/contacts/duplicates?by=name',
      `/records/contacts/merge?record=${contact.id}&from=${twin.id}`,
      '/workflows',
      '/workflows/new',
      '/workflows/templates',
      '/workflows/templates/newsletter-sync',
      '/workflows/nodes',
      '/workflows/nodes/crm_manager',
      `/workflows/${workflow_id}`,
      `/workflows/${workflow_id}/test`,
      `/workflows/${workflow_id}/versions`,
      `/workflows/${workflow_id}/run`,
      '/runs',
      `/runs/${run_id}`,
      '/analytics/pipeline',
      '/analytics/workflows',
      '/analytics/explore?metric=runs.count&interval=day&group_by=status',
      '/analytics/reports',
      `/analytics/reports/${report.id}`,
      '/knowledge',
      '/knowledge/collections/new',
      `/knowledge/collections/${collection.id}`,
      `/knowledge/collections/${collection.id}/documents/new`,
      `/knowledge/collections/${collection.id}/documents/new?from=file`,
      `/knowledge/documents/${document.id}`,
      '/knowledge/search?q=refunds',
      '/settings',
      '/settings/organization',
      '/settings/members',
      '/settings/members/invite',
      `/settings/members/${member.id}`,
      '/settings/usage',
      '/settings/audit-log',
      '/settings/custom-fields',
      '/settings/custom-fields/contacts/new',
      '/settings/custom-fields/contacts/fields/tier',
      '/settings/pipelines',
      '/settings/pipelines/new',
      `/settings/pipelines/${pipelines.data[0].id}`,
      '/settings/exchange-rates',
      '/settings/variables',
      '/settings/secrets',
      '/settings/secrets/new',
      '/settings/mail-suppressions',
      '/settings/account',
      '/settings/keys',
      '/settings/keys/new',
      '/settings/assistants',
      authorizePath(asking(await registered(suite.api), newVerifier())),
      '/settings/webhooks/incoming',
      `/settings/webhooks/incoming/${incoming.id}`,
      '/settings/webhooks/outgoing/new',
      `/settings/webhooks/outgoing/${outgoing.id}`,
    ]
  }

  async function open(options: Parameters<Browser['newContext']>[0] = {}, isSignedIn = true): Promise<Page> {
    const context: BrowserContext = await browser.newContext(options)
    if (isSignedIn) await context.addCookies([cookie])
    const page = await context.newPage()
    page.on('console', (message) => {
      if (message.type() === 'error') problems.push(`${page.url()}: ${message.text()}`)
    })
    page.on('pageerror', (error) => problems.push(`${page.url()}: ${error.message}`))
    page.on('request', (request) => {
      const isOwn = request.url().startsWith(`${suite.api.url}/`)
      if (!isOwn) problems.push(`${page.url()} requests ${request.url()}`)
    })
    return page
  }
  const go = (page: Page, path: string) => page.goto(suite.api.url + path)
  /** Moves the focus by Tab to what has this name. */
  async function tabIn(page: Page, name: string) {
    for (let i = 0; i < 120; i++) {
      await page.keyboard.press('Tab')
      const focused = await page.evaluate(() => {
        const one = document.activeElement as HTMLInputElement | null
        return one?.labels?.[0]?.textContent || one?.getAttribute('aria-label') || one?.textContent || ''
      })
      if (focused.trim().startsWith(name)) return
    }
    throw new Error(`Tab does not reach ${name} on ${page.url()}`)
  }

  for (const colorScheme of ['light', 'dark'] as const)
    it(`is accessible, and nothing is reported, in the ${colorScheme} theme`, async () => {
      const page = await open({ colorScheme })
      for (const path of paths) {
        await go(page, path)
        await page.evaluate(axe.source)
        const found = await page.evaluate(async () => {
          const { axe } = globalThis as unknown as { axe: typeof import('axe-core') }
          const { violations } = await axe.run(document, { resultTypes: ['violations'] })
          return violations.map(
            ({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html.slice(0, 200)).join(' | ')}`,
          )
        })
        problems.push(...found.map((text) => `${path}: ${text}`))
      }
      await page.context().close()
    })

  it('fits on a phone: no page is wider than it', async () => {
    const page = await open({ viewport: { width: 390, height: 844 } })
    for (const path of paths) {
      await go(page, path)
      const width = await page.evaluate(() => document.documentElement.scrollWidth)
      assert.ok(width <= 390, `${path} is ${width} px wide`)
    }
    await page.context().close()
  })

  it('is used by the keyboard alone: sign in, create, change, delete, undo, sign out', async () => {
    const page = await open({}, false)
    const { keyboard } = page
    const tabTo = (name: string) => tabIn(page, name)
    await go(page, '/records/contacts/new')
    await page.waitForSelector('[name=email]:focus')
    await keyboard.type('ada@example.com')
    await tabTo('Password')
    await keyboard.type(password)
    await keyboard.press('Enter')
    await page.waitForURL('**/records/contacts/new')
    await tabTo('First name')
    await keyboard.type('Grace')
    await tabTo('Email')
    await keyboard.type('grace@example.com')
    await keyboard.press('Enter')
    await page.waitForURL('**?done=created')
    await tabTo('Edit')
    await keyboard.press('Enter')
    await page.waitForURL('**/edit')
    await tabTo('Job title')
    await keyboard.type('Admiral')
    await keyboard.press('Enter')
    await page.waitForURL('**?done=saved')
    assert.match(await page.textContent('main').then(String), /Admiral/)
    await tabTo('Delete')
    await keyboard.press('Enter')
    await tabTo('Delete the contact')
    await keyboard.press('Enter')
    await page.waitForURL('**?done=deleted**')
    await tabTo('Undo')
    await keyboard.press('Enter')
    await page.waitForURL('**?done=restored')
    await tabTo('TTest')
    await keyboard.press('Enter')
    await tabTo('Sign out')
    await keyboard.press('Enter')
    await page.waitForURL('**/sign-in')
    await page.context().close()
  })

  it('writes a workflow by the keyboard: it is checked as one types, mended, filled, saved and published', async () => {
    const page = await open()
    const { keyboard } = page
    await go(page, '/workflows/new')
    await tabIn(page, 'YAML')
    await keyboard.press('Control+a')
    await keyboard.type('name: Typed\nnodes:\nfirst:\ntype: set_feilds\n')
    assert.equal(
      await page.inputValue('#f-spec'),
      'name: Typed\nnodes:\n  first:\n    type: set_feilds\n    ',
    )
    await page.waitForSelector('#findings >> text=did you mean set_fields?')
    await page.waitForSelector('.gutter .red >> text=4')
    await keyboard.type('config: {fields: {x: 1}}')
    await tabIn(page, 'Apply')
    await keyboard.press('Enter')
    await page.waitForFunction(() => /type: set_fields/.test(document.querySelector('textarea')!.value))
    await tabIn(page, 'Node')
    await keyboard.type('delya')
    await keyboard.press('Enter')
    await page.waitForSelector('text=There is no node type delya')
    for (let i = 0; i < 2; i++) await keyboard.press('Backspace')
    await keyboard.type('ay')
    await keyboard.press('Enter')
    await page.waitForFunction(() =>
      /\n {2}delay:\n {4}type: delay/.test(document.querySelector('textarea')!.value),
    )
    await keyboard.press('Control+s')
    await page.waitForURL('**?done=created')
    await page.waitForSelector('.graph [data-node=delay]')
    await tabIn(page, 'YAML')
    await keyboard.press('Control+End')
    await keyboard.type('# The end')
    await tabIn(page, 'Save and publish')
    await keyboard.press('Enter')
    await page.waitForURL('**?done=activated')
    await page.context().close()
    // The check of a half-typed word asked for a node type that there is not.
    problems.splice(0, problems.length, ...problems.filter((text) => !/404/.test(text)))
  })

  it('asks before it leaves a workflow with changes', async () => {
    const page = await open()
    await go(page, paths.find((path) => /^\/workflows\/[0-9a-f-]{36}$/.test(path))!)
    await page.click('#f-spec')
    await page.keyboard.type('# Not saved yet\n')
    const asked = page.waitForEvent('dialog')
    const leaving = page.click('text=Home >> nth=0').catch(() => undefined)
    const dialog = await asked
    assert.equal(dialog.type(), 'beforeunload')
    await dialog.dismiss()
    await leaving
    assert.match(await page.inputValue('#f-spec'), /# Not saved yet/)
    await page.context().close()
  })

  it('moves a deal by a drag, and by the keyboard', async () => {
    const page = await open()
    await go(page, '/records/deals/board')
    await page.dragAndDrop('[data-stage=lead] [data-deal]', '[data-stage=proposal]')
    await page.waitForSelector('text=Moved.')
    await page.waitForSelector('[data-stage=proposal] [data-deal]')
    await tabIn(page, '→Move صفقة to Negotiation')
    await page.keyboard.press('Enter')
    await page.waitForURL('**done=moved')
    await page.waitForSelector('[data-stage=negotiation] [data-deal]')
    await page.context().close()
  })

  it('finds from anywhere by Ctrl-K', async () => {
    const page = await open()
    const contact = paths.find((path) => /^\/records\/contacts\/[0-9a-f-]{36}$/.test(path))!
    await go(page, '/runs')
    await page.keyboard.press('Control+k')
    await page.keyboard.type('someone@')
    await page.waitForSelector(`.palette a[href="${contact}"]`)
    await page.keyboard.press('Escape')
    assert.equal(await page.evaluate(() => document.querySelector('dialog')!.open), false)
    await page.keyboard.press('Control+k')
    await page.waitForSelector(`.palette a[href="${contact}"]`)
    await page.keyboard.press('ArrowDown')
    await page.keyboard.press('Enter')
    await page.waitForURL(`**${contact}`)
    // Typed faster than found.
    await go(page, '/runs')
    await page.keyboard.press('Control+k')
    await page.keyboard.type('someone@')
    await page.keyboard.press('Enter')
    await page.waitForURL(`**${contact}`)
    await page.context().close()
  })

  it('shows the focus on the list of errors, and sends a form once however often it is clicked', async () => {
    const page = await open()
    await go(page, '/workflows/new')
    await page.fill('textarea', 'name: x\nnodes:\n  a: {type: nothing}\n')
    await page.click('text=Check')
    assert.match(await page.evaluate(() => document.activeElement?.textContent ?? ''), /Line 3/)
    await go(page, '/settings/keys/new')
    await page.fill('[name=name]', 'Once')
    await page.check('[value="contacts:read"]')
    await page.dblclick('text=Make the key')
    await page.waitForSelector('text=copy it now')
    const { body } = await suite.api.request('GET', '/app/keys', {
      key: null,
      headers: { Cookie: `${cookie.name}=${cookie.value}` },
    })
    assert.equal(body.data.filter(({ name }: { name: string }) => name === 'Once').length, 1)
    await page.context().close()
  })

  it('shows what happens to an open run without a reload', async () => {
    const page = await open()
    const path = paths.find((one) => one.startsWith('/runs/'))!
    await go(page, path)
    await page.waitForSelector('text=Pay it?')
    const run = await request('GET', `/v1${path}`)
    await request('POST', `/v1${path}/signal`, {
      approval_id: run.waits[0].approval.id,
      decision: 'approved',
    })
    await page.waitForSelector('h1 .status.green')
    await page.context().close()
  })

  it('opens by a link on another site, with the session', async () => {
    const page = await open()
    await page.goto(`${suite.api.url.replace('127.0.0.1', 'localhost')}/sign-in`)
    const isOther = (text: string) => !text.includes('localhost')
    await page.evaluate((to) => location.assign(to), `${suite.api.url}/runs?status=failed`)
    await page.waitForSelector('h1:has-text("Runs")')
    assert.equal(page.url(), `${suite.api.url}/runs?status=failed`)
    problems.splice(0, problems.length, ...problems.filter(isOther))
    await page.context().close()
  })

  it('connects an assistant in a window that its site has opened, which stays that of the site', async () => {
    const site = await startHttpServer(({ url }, response) => {
      response.setHeader('Content-Type', 'text/html')
      const isBack = url!.startsWith('/callback')
      response.end(
        isBack ? '<script>opener.postMessage(location.search, "*")</script>' : '<h1>Assistant</h1>',
      )
    })
    const address = site.url.replace('127.0.0.1', 'localhost')
    const callback = `${address}/callback`
    const asked = asking(await registered(suite.api, 'Claude', callback), newVerifier(), {
      redirect_uri: callback,
    })
    const context = await browser.newContext()
    await context.addCookies([cookie])
    const page = await context.newPage()
    await page.goto(address)
    const opened = page.waitForEvent('popup')
    await page.evaluate((to) => {
      const told = new Promise((resolve) => addEventListener('message', ({ data }) => resolve(data)))
      Object.assign(globalThis, { told })
      globalThis.open(to)
    }, suite.api.url + authorizePath(asked))
    const popup = await opened
    await popup.click('button:has-text("Connect")')
    const search = await page.evaluate(() => (globalThis as unknown as { told: Promise<string> }).told)
    assert.match(search, /^\?code=agxc_[\w-]{43}&state=the\+state&iss=/)
    await context.close()
    await site.close()
  })

  it('connects no assistant by a click for what was there a moment ago', async () => {
    const page = await open()
    await page.clock.install({ time: 0 })
    await page.clock.pauseAt(1_000)
    await page.goto(suite.api.url + authorizePath(asking(await registered(suite.api), newVerifier())))
    const isDisabled = () => page.locator('button:has-text("Connect")').isDisabled()
    assert.equal(await isDisabled(), true)
    await page.clock.runFor(900)
    await page.evaluate(() => dispatchEvent(new Event('focus')))
    await page.clock.runFor(900)
    assert.equal(await isDisabled(), true, 'it came to the front again')
    await page.clock.runFor(200)
    assert.equal(await isDisabled(), false)
    await page.context().close()
  })

  it('works without JavaScript', async () => {
    const page = await open({ javaScriptEnabled: false })
    await go(page, '/records/companies/new')
    await page.fill('[name=name]', 'Without script')
    await page.click('text=Create the company')
    await page.click('text=Delete')
    await page.click('text=Delete the company')
    await page.click('text=Undo the delete')
    assert.match(page.url(), /done=restored/)
    await page.context().close()
  })
})
