import type { KindDefinition } from '../kind.ts'
import { lifecycle_stage } from '../lifecycle-stage.ts'
import { ADDRESS_NAMES, NOTE_NAMES } from '../synonym-names.ts'

export const contact: KindDefinition = {
  description: 'A person.',
  atLeastOneOf: ['email', 'phone', 'first_name', 'last_name'],
  upsertKeys: ['email'],
  fields: {
    first_name: { type: 'text', description: 'The given name.' },
    last_name: { type: 'text', sorted: true, description: 'The family name.' },
    email: { type: 'email', description: 'The email address; comparison is case-insensitive.' },
    phone: {
      type: 'phone',
      description: 'A phone number, stored as E.164 if it parses and has no extension.',
    },
    mobile_phone: {
      type: 'phone',
      description: 'A phone number, stored as E.164 if it parses and has no extension.',
    },
    other_emails: {
      type: 'emails',
      default: [],
      description:
        'Further email addresses, by which upserts, imports and incoming webhooks find the contact, too. A write is refused if another contact has one.',
    },
    other_phones: {
      type: 'phones',
      default: [],
      description: 'Further phone numbers, by which duplicates are found, too.',
    },
    job_title: { type: 'text', description: 'The position in the company.' },
    company_id: {
      type: 'reference',
      to: 'companies',
      description: 'The company of the contact.',
    },
    website: { type: 'url', description: 'The website.' },
    linkedin_url: { type: 'url', description: 'The LinkedIn profile.' },
    address: { type: 'address', description: 'The postal address.' },
    timezone: { type: 'timezone', description: 'The time zone, as an IANA name such as Europe/Zurich.' },
    lead_source: { type: 'text', description: 'The source of the lead.' },
    lead_status: {
      type: 'enum',
      values: ['new', 'open', 'in_progress', 'attempted', 'connected', 'unqualified'],
      description: 'The status of the lead.',
    },
    lifecycle_stage,
    do_not_contact: {
      type: 'boolean',
      default: false,
      description: 'Whether the contact must not be contacted.',
    },
    last_contacted_at: { type: 'datetime', description: 'The time of the last contact.' },
  },
  derive: ({ next }) => othersOf(next),
  columns: ['email', 'phone', 'job_title', 'company_id', 'lead_status', 'created_at'],
  dimensions: ['lead_status', 'lifecycle_stage', 'lead_source'],
  isFoundByName: true,
  synonyms: {
    first_name:
      'firstname fname givenname forename namefirst vorname prenom nombre nome voornaam imie primeironome first',
    last_name:
      'lastname lname surname familyname namelast nachname nom apellido apellidos cognome sobrenome achternaam nazwisko nomdefamille nomedefamilia last',
    full_name:
      'fullname name displayname completename contactname customername signername nomcomplet nombrecompleto nomecompleto volledigenaam',
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
    note_content: NOTE_NAMES,
    ...ADDRESS_NAMES,
  },
  example: { first_name: 'Ada', last_name: 'Lovelace', email: 'ada@example.com', phone: '+41446681800' },
}

/** What is the own email or phone is none of the others. */
function othersOf(next: Readonly<Record<string, unknown>>) {
  const without = (list: unknown, own: unknown[]) => {
    const taken = own.flatMap((value) => (typeof value === 'string' ? value.toLowerCase() : []))
    return ((list ?? []) as string[]).filter((value) => !taken.includes(value.toLowerCase()))
  }
  return {
    other_emails: without(next.other_emails, [next.email]),
    other_phones: without(next.other_phones, [next.phone, next.mobile_phone]),
  }
}
