import type { KindName } from '../records/kind.ts'
import { normalise } from '../records/synonyms.ts'

/**
 * The exports of other systems, recognized by their headers. Only what their columns need beyond the synonyms: a target,
 * or the reason why a column is dropped.
 */
export const SOURCES = ['google', 'pipedrive', 'salesforce', 'hubspot'] as const
export type Source = (typeof SOURCES)[number]

interface Preset {
  /** Columns that no other system has. */
  has: RegExp
  columns: [RegExp, Meaning][]
}

/** `to`: the target, by kind where it differs. */
export type Meaning = { to: string | Partial<Record<KindName, string>> } | { dropped: string }

const COUNTED = 'the service counts it itself'
const KEPT = 'only the other system uses it'

/** Names of the columns without those of their kind (`Person - `), normalised. */
const PRESETS: Record<Source, Preset> = {
  google: {
    has: /^E-mail 1 - Value$/i,
    columns: [
      [/^email\d+value$/, { to: 'emails' }],
      [/^phone\d+value$/, { to: 'phones' }],
      [/^(organization1?name)$/, { to: 'company_name' }],
      [/^organization1?title$/, { to: 'job_title' }],
      [/^(labels|groupmembership)$/, { to: 'tags' }],
      [/^website1value$/, { to: 'website' }],
      [/^address1street$/, { to: 'address.line1' }],
      [/^address1extendedaddress$/, { to: 'address.line2' }],
      [/^address1city$/, { to: 'address.city' }],
      [/^address1region$/, { to: 'address.state' }],
      [/^address1postalcode$/, { to: 'address.postal_code' }],
      [/^address1country$/, { to: 'address.country' }],
      [/^address1(formatted|pobox)$/, { dropped: 'the parts of the address have it' }],
      [
        /^(email|phone|address|website|organization|event|relation)\d*(label|type)$/,
        { dropped: 'it only names the kind of another column' },
      ],
      [/^(name|namefull)$/, { to: 'full_name' }],
      [
        /^(phonetic(first|middle|last)name|nameprefix|namesuffix|fileas|photo|yominame|initials)$/,
        { dropped: KEPT },
      ],
    ],
  },
  salesforce: {
    has: /^(SystemModstamp|IsDeleted|CreatedById|LastModifiedById)$/i,
    columns: [
      [/^id$/, { to: 'external_id' }],
      [/^ownerid$/, { to: 'owner_id' }],
      [/^accountid$/, { to: 'company_external_id' }],
      [/^contactid$/, { to: { deals: 'contact_external_id' } }],
      [/^parentid$/, { to: { companies: 'parent_company_external_id' } }],
      [/^(mailing|billing)street$/, { to: 'address.line1' }],
      [/^(mailing|billing)city$/, { to: 'address.city' }],
      [/^(mailing|billing)state$/, { to: 'address.state' }],
      [/^(mailing|billing)postalcode$/, { to: 'address.postal_code' }],
      [/^(mailing|billing)country$/, { to: 'address.country' }],
      [/^stagename$/, { to: 'stage' }],
      [/^type$/, { to: { deals: 'deal_type' } }],
      [/^currencyisocode$/, { to: { deals: 'currency', companies: 'currency' } }],
      [/^annualrevenue$/, { to: { companies: 'annual_revenue' } }],
      [
        /^(systemmodstamp|lastmodified(date|byid)|createdbyid|lastvieweddate|lastreferenceddate|lastactivitydate|photourl|jigsaw.*|cleanstatus|masterrecordid|isdeleted|reportstoid|isemailbounced|emailbounced.*|(mailing|billing)(latitude|longitude|geocodeaccuracy)|individualid|recordtypeid|pricebook2id|campaignid|hasopportunitylineitem|fiscal.*|forecastcategory.*|isclosed|iswon|expectedrevenue|pushcount|hasopenactivity|hasoverduetask|laststagechangedate)$/,
        { dropped: KEPT },
      ],
    ],
  },
  pipedrive: {
    has: /^(Person|Deal|Organization|Lead|Activity|Note) - /,
    columns: [
      [/^id$/, { to: 'external_id' }],
      [/^owner$/, { to: 'owner_id' }],
      [/^(addtime|(person|organization|deal|lead)created)$/, { to: 'created_at' }],
      [/^email(work|home|other)?$/, { to: { contacts: 'emails' } }],
      [/^phone(work|home|mobile|other)?$/, { to: { contacts: 'phones' } }],
      [/^organization$/, { to: 'company_name' }],
      [/^organizationid$/, { to: 'company_external_id' }],
      [/^(contactperson|personname)$/, { to: { deals: 'contact_name', activities: 'contact_name' } }],
      [/^dealid$/, { to: 'deal_external_id' }],
      [/^currencyofvalue$/, { to: { deals: 'currency' } }],
      [/^marketingstatus$/, { to: { contacts: 'opted_in' } }],
      [/^(contactpersonid|personid)$/, { to: { deals: 'contact_external_id' } }],
      [/^label(s)?$/, { to: 'tags' }],
      [/^name$/, { to: { contacts: 'full_name', companies: 'name', deals: 'name' } }],
      [/^title$/, { to: { deals: 'name', contacts: 'job_title' } }],
      [/^value$/, { to: { deals: 'amount' } }],
      [/^status$/, { to: { deals: 'outcome' } }],
      [
        /^(opendeals|closeddeals|wondeals|lostdeals|activities|donetodo|activitiestodo|doneactivities|people|emailmessagescount|totalactivities|participants|products.*|productquantity|productamount|peoplecount|weightedvalue|currencyofweightedvalue)$/,
        { dropped: COUNTED },
      ],
      [
        /^(nextactivitydate|lastactivitydate|updatetime|lastemail.*|visibleto|dealupdatetime|profilepicture|followers|creator|archivestatus|laststagechange|addressfull.*)$/,
        { dropped: KEPT },
      ],
    ],
  },
  hubspot: {
    has: /^(Record ID|hs_object_id)$/i,
    columns: [
      [/^(recordid|hsobjectid)$/, { to: 'external_id' }],
      [/^(contact|company|deal|ticket)?owner$|^hubspotownerid$/, { to: 'owner_id' }],
      [/^additionalemailaddresses$/, { to: { contacts: 'emails' } }],
      [/^associatedcompanyids?(primary)?$/, { to: 'company_external_id' }],
      [/^associatedcontactids?$/, { to: { deals: 'contact_external_id' } }],
      [/^associatedcompany(primary)?$/, { to: 'company_name' }],
      [
        /^associated(contact|deal|note|company)(s|ids)?.*$/,
        { dropped: 'the ids of the associated records have it' },
      ],
      [
        /^(numberof(associated|times|sales).*|numassociated.*|recentdealamount|totalrevenue|daystoclose|dealprobability)$/,
        { dropped: COUNTED },
      ],
      [
        /^(last(activity|modified).*|hs(analytics|lastmodified|email).*|marketingcontactstatus.*|original(source|traffic).*drilldown.*|mergedrecordids.*|hubspotteam|recordsource.*|createdbyuserid|forecast.*|nextactivitydate|isclosed.*|weightedamount.*)$/,
        { dropped: KEPT },
      ],
    ],
  },
}

/** The system whose export has this header. */
export const sourceOf = (header: string[]): Source | undefined =>
  SOURCES.find((source) => header.some((name) => PRESETS[source].has.test(name)))

/** What a column of the system's export means; undefined: its name decides, as everywhere. */
export function presetMeaning(
  source: Source,
  kind: KindName,
  column: string,
): { to: string } | { dropped: string } | undefined {
  const own =
    source === 'pipedrive' ? column.replace(/^(Person|Deal|Organization|Lead|Activity) - /, '') : column
  const name = normalise(own)
  const meaning = PRESETS[source].columns.find(([pattern]) => pattern.test(name))?.[1]
  if (!meaning || 'dropped' in meaning) return meaning
  const to = typeof meaning.to === 'string' ? meaning.to : meaning.to[kind]
  return to === undefined ? undefined : { to }
}
