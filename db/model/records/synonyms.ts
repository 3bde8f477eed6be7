import type { KindName } from '../../../workflows/shared/record-kinds.ts'

/** `First-Name`, `first_name`, `firstName` and `First Name` all become `firstname`. */
export function normalise(name: string): string {
  return name
    .normalize('NFKD')
    .toLowerCase()
    .replace(/[^\p{Letter}\p{Number}]/gu, '')
}

/*
 * The names of fields in other systems, normalised, best first: for webhook payloads and for columns of CSV files.
 */

const ADDRESS = {
  'address.line1': 'addressline1 address1 line1 streetaddress street addressstreet strasse addrline1 address',
  'address.line2': 'addressline2 address2 line2 addrline2 suite apartment',
  'address.city': 'city town addresscity ort stadt ville ciudad locality',
  'address.state': 'state province region provincecode statecode addressstate county stateregion',
  'address.postal_code': 'postalcode zip zipcode postcode postal plz codepostal addresszip',
  'address.country': 'country countrycode addresscountry land pays pais countryregion',
}

/** Names of the sender's free text, which becomes a note. */
const NOTE = 'notecontent message comment comments note notes question enquiry inquiry nachricht mensaje'

const NAMES: Record<KindName, Record<string, string>> = {
  contacts: {
    first_name:
      'firstname fname givenname forename namefirst vorname prenom nombre nome voornaam imie primeironome first',
    last_name:
      'lastname lname surname familyname namelast nachname nom apellido apellidos cognome sobrenome achternaam nazwisko nomdefamille nomedefamilia last',
    full_name:
      'fullname name displayname completename contactname customername nomcomplet nombrecompleto nomecompleto volledigenaam',
    email:
      'email emailaddress mail emailid workemail businessemail personalemail primaryemail replyto correo correoelectronico courriel emailadresse emailadres adresseemail adresseelectronique indirizzoemail adresemail mailaddress emails emailaddresses',
    other_emails:
      'otheremails additionalemails additionalemailaddresses secondaryemail secondaryemails alternateemail alternateemails email2 emailaddress2 weitereemails',
    phone:
      'phone phonenumber telephone tel workphone businessphone primaryphone contactnumber telefon telefonnummer telefono telefone telefoonnummer numerodetelephone numerodetelefono numerotelefonu whatsapp phones phonenumbers',
    mobile_phone:
      'mobile mobilephone mobilenumber cell cellphone cellnumber handy handynummer mobilephonenumber telephoneportable telefonomovil cellulare telemovel mobielenummer telefonkomorkowy',
    other_phones:
      'otherphone otherphones additionalphones additionalphonenumbers secondaryphone alternatephone phone2 phonenumber2 weiteretelefonnummern',
    job_title: 'jobtitle title position role jobrole occupation designation',
    company_name:
      'company companyname organization organisation organizationname organisationname business businessname employer account accountname firma unternehmen entreprise societe empresa azienda bedrijf bedrijfsnaam associatedcompany primaryassociatedcompany',
    website: 'website websiteurl url homepage web site companywebsite',
    linkedin_url: 'linkedinurl linkedin linkedinprofile linkedinprofileurl',
    timezone: 'timezone tz',
    lead_source: 'leadsource source utmsource leadorigin hearaboutus howdidyouhearaboutus originalsource',
    tags: 'tags tag labels',
    external_id: 'externalid',
    note_content: NOTE,
    ...ADDRESS,
  },
  companies: {
    name: 'companyname company organizationname organisationname organization organisation businessname business accountname name firma unternehmen entreprise societe empresa azienda',
    domain: 'domain companydomain domainname companydomainname',
    website: 'website websiteurl url homepage web site companywebsite',
    phone: 'phone phonenumber telephone tel companyphone telefon telefono phones phonenumbers',
    email: 'email emailaddress mail companyemail emails emailaddresses',
    industry: 'industry sector branche',
    description: 'description about',
    employee_count: 'employeecount employees numberofemployees companysize size headcount',
    linkedin_url: 'linkedinurl linkedin linkedincompanypage',
    tags: 'tags tag labels',
    external_id: 'externalid',
    note_content: NOTE,
    ...ADDRESS,
  },
  deals: {
    name: 'dealname opportunityname name title deal opportunity subject projectname',
    amount: 'amount dealamount dealvalue value total price budget revenue',
    currency: 'currency currencycode',
    pipeline: 'pipeline dealpipeline',
    stage: 'stage dealstage pipelinestage',
    probability: 'probability',
    expected_close_date: 'expectedclosedate closedate expectedclose',
    lost_reason: 'lostreason closedlostreason',
    company_name:
      'company companyname organization organisation organizationname account accountname associatedcompany primaryassociatedcompany',
    source: 'source leadsource utmsource dealsource',
    deal_type: 'dealtype',
    tags: 'tags tag labels',
    external_id: 'externalid',
    note_content: `${NOTE} description`,
  },
  tasks: {
    title: 'title tasktitle taskname name subject summary task todo',
    body: 'body description taskdescription details notes note message content comment notebody',
    status: 'status taskstatus',
    priority: 'priority taskpriority urgency',
    type: 'tasktype',
    due_at: 'dueat duedate due deadline',
    reminder_at: 'reminderat reminder',
    tags: 'tags tag labels',
    external_id: 'externalid',
  },
  notes: {
    title: 'subject',
    body: 'notes notebody content description',
  },
  activities: {
    type: 'activitytype',
    body: 'notes notebody content description',
    occurred_at: 'activitydate date',
    outcome: 'calloutcome meetingoutcome',
  },
}

/** For each kind: name → field and rank of the name (0 is best). */
export const SYNONYMS = Object.fromEntries(
  Object.entries(NAMES).map(([target, fields]) => [
    target,
    Object.assign(
      Object.create(null),
      Object.fromEntries(
        Object.entries(fields).flatMap(([field, names]) =>
          names.split(' ').map((name, index) => [name, { field, rank: Math.min(index, 5) }]),
        ),
      ),
    ),
  ]),
) as Record<KindName, Record<string, { field: string; rank: number } | undefined>>

const words = (text: string) => new Set(text.split(' '))

/** Parent names of values that belong to the person in the payload; `attendees: [{…}]` as well. */
export const PERSON_WORDS = words(
  'contact customer lead person subscriber user client attendee buyer invitee applicant guest respondent requester submitter participant registrant'
    .split(' ')
    .flatMap((word) => [word, `${word}s`])
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
  'organizer organiser organizers organisers host hosts owner owners agent agents manager team teams createdby updatedby modifiedby previous previousattributes previousdata before old salesrep assignee assignedto sender merchant shop store vendor seller form campaign page adset product products items lineitems repository metadata meta definition',
)
