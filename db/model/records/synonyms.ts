import { type KindName, kindNames, kinds } from './kinds/index.ts'

/** `First-Name`, `first_name`, `firstName` and `First Name` all become `firstname`. */
export function normalise(name: string): string {
  return name
    .normalize('NFKD')
    .toLowerCase()
    .replace(/[^\p{Letter}\p{Number}]/gu, '')
}

/** For each kind: name → field and rank of the name (0 is best). */
export const SYNONYMS = Object.fromEntries(
  kindNames.map((kind) => [
    kind,
    Object.assign(
      Object.create(null),
      Object.fromEntries(
        Object.entries(kinds[kind].synonyms).flatMap(([field, names]) =>
          names.split(' ').map((name, index) => [name, { field, rank: Math.min(index, 5) }]),
        ),
      ),
    ),
  ]),
) as Record<KindName, Record<string, { field: string; rank: number } | undefined>>

const words = (text: string) => new Set(text.split(' '))

/** Parent names of values that belong to the person in the payload; `attendees: [{…}]` as well. */
export const PERSON_WORDS = words(
  'contact customer lead person subscriber user client attendee buyer invitee applicant guest respondent requester submitter signer participant registrant candidate prospect caller visitor donor patient student'
    .split(' ')
    .flatMap((word) => [word, `${word}s`])
    .concat('signerdetails')
    .join(' '),
)

export const COMPANY_WORDS = words('company organization organisation business employer account')

/** Parent names of values that belong to the record itself, for the kinds that payloads are mapped to. */
export const SUBJECT_WORDS = {
  contacts: PERSON_WORDS,
  companies: COMPANY_WORDS,
  deals: words('deal opportunity project sale'),
  tasks: words('task todo ticket issue'),
} satisfies Partial<Record<KindName, Set<string>>>

/**
 * Parent names of values that belong to another person or thing, or to the record as it was: the host of a booking is one
 * of ours, and must not become a contact.
 */
export const UNRELATED_WORDS = words(
  [
    ...'organizer organiser host owner agent manager createdby updatedby modifiedby sentby salesrep assignee assignedto recruiter coordinator actor reporter author creator sender'
      .split(' ')
      .flatMap((role) => ['', 's', 'detail', 'details', 'info', 'user', 'profile'].map((end) => role + end)),
    'team teams postedby taggedby sharedby addedby invitedby approvedby changedby performedby initiatedby membercreator hiringteam',
    'previous previousattributes previousdata previousvalue previousvalues before old olddata oldvalue oldvalues historyitem historyitems',
    'merchant shop store vendor seller origin form campaign page adset product products items lineitems repository metadata meta definition',
  ].join(' '),
)
