import type { Family, Tally } from '../family.ts'
import type { Ground } from '../ground.ts'
import { Caller, eventually, withLimits } from '../workflows.ts'

/** Recipients that the attacker may mail in a day or minute, by the limit that is tried. */
const ALLOWED = 4
const WANTED = 30

const LOOP = `name: Spam
inputs:
  items: {type: array, required: true}
nodes:
  each:
    type: for_each
    config: {items: "{{ inputs.items }}", concurrency: 20, on_item_error: continue}
    next: {item: mail}
  mail:
    type: send_email
    config: {to: "{{ item }}", subject: Hello, text: Hello.}
`

const strangers = (at: string, count = WANTED) =>
  Array.from({ length: count }, (_, n) => `a${n}@${at}.example`)

/** Mails to foreign people: by runs, by tests of nodes, by invitations, resets and sign-ups. */
export const mails: Family = {
  name: 'mails',
  title: 'mails to people who did not ask for them',
  async run(ground, tally) {
    const day = { mail_recipients_per_day: ALLOWED, mail_recipients_per_minute: 1_000 }
    await forget(ground)
    await withLimits(ground, day, () => byRun(ground, tally))
    await forget(ground)
    const minute = { mail_recipients_per_day: 1_000, mail_recipients_per_minute: ALLOWED }
    await withLimits(ground, minute, () => byNodeTests(ground, tally))
    await forget(ground)
    await byLinks(ground, tally)
    await stillMails(ground, tally)
  },
}

const forget = ({ db }: Ground) => db.system('limit_windows').where('subject', 'like', 'mail:%').delete()

const receivedAt = ({ smtp }: Ground, host: string) =>
  smtp.received.flatMap(({ to }) => to).filter((one) => one.endsWith(`@${host}.example`))

function countMails(ground: Ground, tally: Tally, host: string, allowed: number): void {
  const received = receivedAt(ground, host).length
  for (let n = 1; n <= Math.max(WANTED, received); n++)
    tally.attempt(n > received || n <= allowed, `mail ${n} to a stranger at ${host}, of ${allowed} allowed`)
}

async function byRun(ground: Ground, tally: Tally): Promise<void> {
  const caller = new Caller(ground, ground.attacker)
  const run = await caller.run(await caller.workflow(LOOP), { items: strangers('loop') })
  tally.attempt((await caller.endOf(run)) !== 'open', 'the run of mails did not end')
  countMails(ground, tally, 'loop', ALLOWED)
  tally.attempt(receivedAt(ground, 'loop').length > 0, 'no mail was sent: nothing was shown')
}

async function byNodeTests(ground: Ground, tally: Tally): Promise<void> {
  const caller = new Caller(ground, ground.attacker)
  for (const to of strangers('test', 15)) {
    const config = { to, subject: 'Hello', text: 'Hello.' }
    const { status } = await caller.call('POST', '/workflows/nodes/test', {
      node_type: 'send_email',
      config,
      confirm: true,
    })
    tally.attempt(status < 500, `a test of send_email: ${status}`)
  }
  const windows = await ground.db
    .system('limit_windows')
    .where({ organization_id: ground.attacker.organizationId, subject: 'mail:minute' })
  for (const { used } of windows) tally.attempt(used <= ALLOWED, `${used} recipients in a minute`)
  countMails(ground, tally, 'test', ALLOWED * windows.length)
}

/** Each kind of mail that anybody, or an admin, can have sent to an address. */
async function byLinks(ground: Ground, tally: Tally): Promise<void> {
  const { send, attacker, db } = ground
  const session = await attacker.session('owner')
  const [known] = await db.system('users').limit(1).pluck('email')
  const address = 'target@links.example'
  const ways: [path: string, headers: Record<string, string>, body: object, allowed: number][] = [
    ['/invitations', session, { email: address, role: 'member' }, 5],
    ['/password-resets', {}, { email: known }, 3],
    [
      '/signup',
      {},
      { organization_name: 'Spam', name: 'Spam', email: address, password: 'a battery for the old horse' },
      3,
    ],
  ]
  for (const [path, headers, body, allowed] of ways) {
    let accepted = 0
    for (let n = 0; n < allowed * 3; n++) {
      const { status, text } = await send('POST', `/app${path}`, headers, body)
      if (status < 300) accepted++
      tally.attempt(accepted <= allowed && status < 500, `${path} ${n + 1}: ${status} ${text.slice(0, 200)}`)
    }
  }
}

/** The mails of another organization are sent. */
async function stillMails(ground: Ground, tally: Tally): Promise<void> {
  const { text } = await new Caller(ground, ground.victim).call('POST', '/workflows/nodes/test', {
    node_type: 'send_email',
    config: { to: 'friend@victim.example', subject: 'Hello', text: 'Hello.' },
    confirm: true,
  })
  const isSent = await eventually(async () => receivedAt(ground, 'victim').length > 0 || undefined, 20)
  tally.attempt(isSent === true, `a mail of another organization was not sent: ${text.slice(0, 300)}`)
}
