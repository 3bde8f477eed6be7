import type { TargetEntity } from '../incoming/types.ts'

/** `First-Name`, `first_name`, `firstName` and `First Name` all become `firstname`. */
export function normalise(name: string): string {
  return name
    .normalize('NFKD')
    .toLowerCase()
    .replace(/[^\p{Letter}\p{Number}]/gu, '')
}

/** Fields with the names that senders use for them (normalised), the best first. */
const ADDRESS = {
  'address.line1': 'addressline1 address1 line1 streetaddress street addressstreet strasse address',
  'address.line2': 'addressline2 address2 line2 suite apartment',
  'address.city': 'city town addresscity ort stadt ville ciudad locality',
  'address.state': 'state province region provincecode statecode addressstate county',
  'address.postal_code': 'postalcode zip zipcode postcode plz codepostal addresszip',
  'address.country': 'country countrycode addresscountry land pays pais',
}

const NAMES: Record<TargetEntity, Record<string, string>> = {
  Contact: {
    first_name: 'firstname fname givenname forename namefirst vorname prenom nombre nome first',
    last_name:
      'lastname lname surname familyname namelast nachname nom apellido apellidos cognome sobrenome last',
    full_name: 'fullname name displayname completename contactname customername nomcomplet nombrecompleto',
    email:
      'email emailaddress mail emailid workemail businessemail personalemail primaryemail replyto correo correoelectronico courriel emailadresse mailaddress',
    phone:
      'phone phonenumber telephone tel workphone businessphone primaryphone contactnumber telefon telefonnummer telefono telefone whatsapp',
    mobile_phone: 'mobile mobilephone mobilenumber cell cellphone cellnumber handy',
    job_title: 'jobtitle title position role jobrole occupation designation',
    company_name:
      'company companyname organization organisation organizationname organisationname business businessname employer account accountname firma unternehmen entreprise societe empresa azienda',
    website: 'website websiteurl url homepage web site companywebsite',
    linkedin_url: 'linkedinurl linkedin linkedinprofile linkedinprofileurl',
    timezone: 'timezone tz',
    lead_source: 'leadsource source utmsource leadorigin hearaboutus howdidyouhearaboutus',
    tags: 'tags tag labels',
    external_id: 'externalid',
    ...ADDRESS,
  },
  Company: {
    name: 'companyname company organizationname organisationname organization organisation businessname business accountname name firma unternehmen entreprise societe empresa azienda',
    domain: 'domain companydomain domainname',
    website: 'website websiteurl url homepage web site companywebsite',
    phone: 'phone phonenumber telephone tel companyphone telefon telefono',
    email: 'email emailaddress mail companyemail',
    industry: 'industry sector branche',
    description: 'description about notes',
    employee_count: 'employeecount employees numberofemployees companysize size headcount',
    linkedin_url: 'linkedinurl linkedin linkedincompanypage',
    tags: 'tags tag labels',
    external_id: 'externalid',
    ...ADDRESS,
  },
}

/** For each target: name → field, and how good a name it is for it (0 the best). */
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
) as Record<TargetEntity, Record<string, { field: string; rank: number } | undefined>>

const words = (text: string) => new Set(text.split(' '))

/** What lies in one of these belongs to the person that the payload is about. */
export const PERSON_WORDS = words(
  'contact customer lead person subscriber user client attendee buyer invitee applicant guest respondent',
)

export const COMPANY_WORDS = words('company organization organisation business employer account')

/** What lies in one of these is about somebody or something else. */
export const STRANGERS = words(
  'owner agent salesrep assignee assignedto sender merchant shop store vendor seller form campaign page adset product products items lineitems repository metadata meta definition',
)
