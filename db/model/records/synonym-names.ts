/** Synonyms of fields that several kinds have, see `KindDefinition.synonyms`. */

export const ADDRESS_NAMES = {
  'address.line1': 'addressline1 address1 line1 streetaddress street addressstreet strasse addrline1 address',
  'address.line2': 'addressline2 address2 line2 addrline2 suite apartment',
  'address.city': 'city town addresscity ort stadt ville ciudad locality',
  'address.state': 'state province region provincecode statecode addressstate county stateregion',
  'address.postal_code': 'postalcode zip zipcode postcode postal plz codepostal addresszip',
  'address.country': 'country countrycode addresscountry land pays pais countryregion',
}

/** Names of the sender's free text, which becomes a note. */
export const NOTE_NAMES =
  'notecontent message comment comments note notes question enquiry inquiry nachricht mensaje'
