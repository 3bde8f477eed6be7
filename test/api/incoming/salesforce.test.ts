import { deepEqual, equal, match, ok } from 'node:assert/strict'
import { type IncomingTest, startIncoming, type TestWebhook } from '../../support/incoming.ts'

const notification = (id: string, type: string, fields: Record<string, string>) =>
  `<Notification><Id>${id}</Id><sObject xsi:type="sf:${type}" xmlns:sf="urn:sobject.enterprise.soap.sforce.com">${Object.entries(
    fields,
  )
    .map(([name, value]) => `<sf:${name}>${value}</sf:${name}>`)
    .join('')}</sObject></Notification>`

const message = (notifications: string[], session = '00Dx!AQ0') =>
  `<?xml version="1.0" encoding="UTF-8"?><soapenv:Envelope xmlns:soapenv="http://schemas.xmlsoap.org/soap/envelope/" xmlns:xsd="http://www.w3.org/2001/XMLSchema" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"><soapenv:Body><notifications xmlns="http://soap.sforce.com/2005/09/outbound"><OrganizationId>00Dx0000000</OrganizationId><ActionId>04kx0000000</ActionId><SessionId>${session}</SessionId><EnterpriseUrl>https://host.example/services/Soap/c/61.0</EnterpriseUrl><PartnerUrl>https://host.example/services/Soap/u/61.0</PartnerUrl>${notifications.join('')}</notifications></soapenv:Body></soapenv:Envelope>`

const ada = notification('04l1', 'Lead', {
  Id: '00Q1',
  Company: 'Analytical Engines',
  Email: 'ada@example.com',
  FirstName: 'Ada',
  LastName: 'Lovelace',
  OwnerId: '005',
})
const bob = notification('04l2', 'Contact', {
  Id: '003',
  Email: 'bob@example.com',
  LastName: 'Stone',
  HasOptedOutOfEmail: 'true',
})
const account = notification('04l3', 'Account', { Id: '001', Name: 'Difference Engines' })

describe('outbound messages of Salesforce', () => {
  let test: IncomingTest
  before(async () => {
    test = await startIncoming()
  })
  after(() => test?.close())
  beforeEach(async () => {
    await test.db.system('contacts').delete()
  })

  const webhook = (values: object = {}) => test.createWebhook({ sender: 'salesforce', ...values })
  const send = ({ id, secret }: TestWebhook, body: string) =>
    test.api.request('POST', `/webhooks/incoming/${id}?token=${secret}`, {
      key: null,
      body,
      headers: { 'Content-Type': 'text/xml; charset=utf-8', SOAPAction: '""' },
    })
  const contacts = async () => {
    const { body } = await test.api.request('GET', '/v1/objects/contacts?sort=email')
    return body.data
      .map((one: Record<string, unknown>) => [one.email, one.last_name, one.do_not_contact])
      .sort()
  }

  it('are acknowledged, each notification stored alone', async () => {
    const one = await webhook()
    const { status, headers, body } = await send(one, message([ada, bob, account]))
    equal(status, 200)
    match(headers.get('content-type')!, /^text\/xml/)
    ok(
      body.includes('<notificationsResponse xmlns="http://soap.sforce.com/2005/09/outbound"><Ack>true</Ack>'),
      body,
    )
    deepEqual(await contacts(), [
      ['ada@example.com', 'Lovelace', false],
      ['bob@example.com', 'Stone', true],
    ])
    const logs = await test.logs(one)
    deepEqual(logs.map(({ status, message }) => [status, message]).sort(), [
      ['Success', 'contact created'],
      ['Success', 'contact created'],
      ['Success', 'the payload of Salesforce has nothing of a contact: nothing was written'],
    ])
  })

  it('repeated alone, together and in another session, change nothing and are acknowledged', async () => {
    const one = await webhook({ deduplication: { action: 'Create Anyway' } })
    for (const body of [
      message([ada]),
      message([ada], 'other'),
      message([ada, bob]),
      message([bob], 'third'),
    ])
      ok(String((await send(one, body)).body).includes('<Ack>true</Ack>'))
    equal((await contacts()).length, 2)
  })

  it('are read by rules, one and several', async () => {
    const from = 'Body.notifications.Notification.sObject'
    const rules = [
      { from: `${from}.Email`, to: 'email' },
      { from: `${from}.LastName`, to: 'last_name' },
    ]
    const one = await webhook({ field_mapping: { mode: 'manual', rules } })
    await send(one, message([ada]))
    await send(one, message([ada, bob]))
    deepEqual(
      (await contacts()).map(([email]: string[]) => email),
      ['ada@example.com', 'bob@example.com'],
    )
  })

  it('that are refused are not acknowledged, so that they come again', async () => {
    const one = await webhook()
    const { status, body } = await send({ ...one, secret: 'wrong' } as TestWebhook, message([ada]))
    deepEqual([status, body.error], [401, 'invalid_secret'])
    deepEqual(await contacts(), [])
  })

  it('keep the session of the sender out of the log of each notification', async () => {
    const one = await webhook()
    await send(one, message([ada, bob], 'secret-session'))
    await send(one, message([account], 'secret-session'))
    for (const { id } of await test.logs(one)) {
      const detail = await test.app('GET', `/webhooks/incoming/${one.id}/logs/${id}`)
      equal(JSON.stringify(detail.body).includes('secret-session'), false)
    }
  })
})
