import type { Issue } from '../../errors.ts'
import type { Draft, KindDefinition } from '../kind.ts'

/**
 * What a contact has consented to: one record for each purpose and channel, whose history has each statement. An old
 * list that is imported again must not undo a withdrawal, so only a newer statement changes the state.
 */
export const consent: KindDefinition = {
  description:
    'The consent of a contact to be contacted for a purpose through a channel. `do_not_contact` of the contact prevails.',
  upsertKeys: ['contact_id'],
  identity: ['contact_id', 'purpose', 'channel'],
  prevails: (consent, other) =>
    timeOf(consent) > timeOf(other) ||
    (timeOf(consent) === timeOf(other) && consent.state === 'withdrawn' && other.state !== 'withdrawn'),
  fields: {
    contact_id: {
      type: 'reference',
      to: 'contacts',
      required: true,
      description: 'The contact. null while that is deleted.',
    },
    purpose: {
      type: 'text',
      required: true,
      max: 100,
      description: 'Such as `newsletter`, in lower case.',
    },
    channel: {
      type: 'enum',
      values: ['any', 'email', 'phone', 'sms', 'messaging', 'post'],
      default: 'any',
      description: 'The way of contact.',
    },
    state: {
      type: 'enum',
      values: ['granted', 'withdrawn'],
      required: true,
      description: 'The last statement.',
    },
    stated_at: {
      type: 'datetime',
      filled: true,
      description: 'When the contact said so. Default: now.',
    },
    source: { type: 'text', description: 'Such as `form` or `phone call`.' },
    text: { type: 'text', max: 10_000, description: 'The text agreed to.' },
    legal_basis: {
      type: 'enum',
      values: ['consent', 'legitimate_interest', 'contract', 'legal_obligation', 'other'],
      default: 'consent',
      description: 'The legal basis.',
    },
  },
  derive: ({ next, before, given, now }) => {
    const purpose = String(next.purpose).toLowerCase()
    const ofThatDay = before !== undefined && withdrawsThatDay(given, before)
    if (before && !ofThatDay && isOlder(given, before)) return { purpose, ...statementOf(before) }
    const changed = before !== undefined && next.state !== before.state
    const unsaid = (name: string) => changed && given[name] === undefined
    return {
      purpose,
      stated_at: ofThatDay
        ? before.stated_at
        : (given.stated_at ?? (changed ? now : (before?.stated_at ?? now))),
      // What the former statement came from, and agreed to, is not that of this one. A withdrawal agrees to nothing.
      ...(unsaid('source') && { source: null }),
      ...(next.state === 'granted' && unsaid('text') && { text: null }),
      ...(next.state === 'granted' && unsaid('legal_basis') && { legal_basis: 'consent' }),
    }
  },
  check: timeIssues,
  events: {
    granted: {
      when: ({ state }, before) => state === 'granted' && before?.state !== 'granted',
      example: { state: 'granted' },
    },
    withdrawn: {
      when: ({ state }, before) => state === 'withdrawn' && before?.state !== 'withdrawn',
      example: { state: 'withdrawn' },
    },
  },
  columns: ['contact_id', 'purpose', 'channel', 'state', 'stated_at', 'source'],
  dimensions: ['purpose', 'channel', 'state', 'legal_basis'],
  synonyms: {
    purpose:
      'purpose consentpurpose subscription subscriptiontype subscriptionname topic list listname newsletter zweck',
    channel: 'channel consentchannel contactpoint contactpointtype kanal',
    state:
      'state consentstate status consentstatus subscriptionstatus privacyconsentstatus optinstatus optstatus einwilligungsstatus',
    stated_at:
      'statedat consentdate consenttime consentedat capturedate effectivefrom optintime optindate confirmtime timestamp',
    source: 'source consentsource capturesource optinsource quelle',
    text: 'text consenttext wording legalbasisexplanation einwilligungstext',
    legal_basis: 'legalbasis lawfulbasis rechtsgrundlage',
    tags: 'tags tag labels',
    external_id: 'externalid consentid',
  },
  example: {
    purpose: 'newsletter',
    contact_id: '01890a5d-ac96-774b-bcce-b302099a8060',
    channel: 'email',
    state: 'granted',
    source: 'form',
  },
}

type Values = Draft['given']

const timeOf = ({ stated_at }: Values) => Date.parse(String(stated_at))

/** Whether a statement is older than the last one. A time without a state corrects that of the last one. */
const isOlder = (given: Values, before: Values): boolean =>
  given.state != null && given.stated_at != null && timeOf(given) < timeOf(before)

const DAY_MS = 86_400_000
/** Midnight, in whatever time zone. */
const QUARTER_MS = 900_000

/** Whether a day without a time, as lists have it, withdraws what was granted during that day. */
const withdrawsThatDay = (given: Values, before: Values): boolean => {
  if (given.state !== 'withdrawn' || before.state !== 'granted' || given.stated_at == null) return false
  const since = timeOf(before) - timeOf(given)
  return timeOf(given) % QUARTER_MS === 0 && since > 0 && since < DAY_MS
}

/** What only a newer statement changes. */
const statementOf = ({ stated_at, source, text, legal_basis }: Values) => ({
  stated_at,
  source,
  text,
  legal_basis,
})

function timeIssues({ next, before, given, now }: Omit<Draft, 'actor'>): Issue[] {
  const issue = (msg: string, hint?: string): Issue[] => [
    { loc: ['body', 'stated_at'], msg, type: 'invalid_value', input: given.stated_at, ...(hint && { hint }) },
  ]
  const stated = given.stated_at == null ? undefined : timeOf(given)
  if (stated !== undefined && stated > Date.parse(now) + CLOCKS_MS) return issue('must not be in the future')
  if (!before || next.state === before.state) return []
  if (stated === undefined)
    return next.state === 'granted'
      ? issue('is required to grant what was withdrawn', 'when the contact consented again')
      : []
  const was = `${before.stated_at}, when it was ${before.state}`
  if (stated < timeOf(before) && !withdrawsThatDay(given, before))
    return issue(`is before ${was}`, 'an older statement does not replace a newer one')
  // Lists have days without times: of two statements at one time, the withdrawal prevails.
  return next.state === 'granted' && stated === timeOf(before)
    ? issue(`is not after ${was}`, 'only a newer statement grants what was withdrawn')
    : []
}

/** The clocks of two systems may differ. */
const CLOCKS_MS = 60_000
