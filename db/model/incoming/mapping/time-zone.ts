import { isTimezone } from '../../../../workflows/shared/timezone.ts'

/** Names of ActiveSupport, which senders written in Rails use (Zendesk, Shopify), that are no city of an IANA zone. */
const RAILS: Record<string, string> = {
  'abu dhabi': 'Asia/Muscat',
  alaska: 'America/Juneau',
  'american samoa': 'Pacific/Pago_Pago',
  arizona: 'America/Phoenix',
  'atlantic time (canada)': 'America/Halifax',
  beijing: 'Asia/Shanghai',
  bern: 'Europe/Zurich',
  brasilia: 'America/Sao_Paulo',
  canberra: 'Australia/Canberra',
  'cape verde is.': 'Atlantic/Cape_Verde',
  'central america': 'America/Guatemala',
  'central time (us & canada)': 'America/Chicago',
  chennai: 'Asia/Kolkata',
  'eastern time (us & canada)': 'America/New_York',
  edinburgh: 'Europe/London',
  ekaterinburg: 'Asia/Yekaterinburg',
  georgetown: 'America/Guyana',
  greenland: 'America/Nuuk',
  guadalajara: 'America/Mexico_City',
  hanoi: 'Asia/Bangkok',
  hawaii: 'Pacific/Honolulu',
  'indiana (east)': 'America/Indiana/Indianapolis',
  islamabad: 'Asia/Karachi',
  kyiv: 'Europe/Kyiv',
  'marshall is.': 'Pacific/Majuro',
  'midway island': 'Pacific/Midway',
  'mountain time (us & canada)': 'America/Denver',
  mumbai: 'Asia/Kolkata',
  'new caledonia': 'Pacific/Noumea',
  'new delhi': 'Asia/Kolkata',
  newfoundland: 'America/St_Johns',
  "nuku'alofa": 'Pacific/Tongatapu',
  osaka: 'Asia/Tokyo',
  'pacific time (us & canada)': 'America/Los_Angeles',
  pretoria: 'Africa/Johannesburg',
  quito: 'America/Guayaquil',
  samoa: 'Pacific/Apia',
  sapporo: 'Asia/Tokyo',
  saskatchewan: 'America/Regina',
  'solomon is.': 'Pacific/Guadalcanal',
  'sri jayawardenepura': 'Asia/Colombo',
  'st. petersburg': 'Europe/Moscow',
  'tokelau is.': 'Pacific/Fakaofo',
  wellington: 'Pacific/Auckland',
  'west central africa': 'Africa/Algiers',
}

/** City in lower case → IANA zone; no city is in two. */
const CITIES = new Map(
  Intl.supportedValuesOf('timeZone').map((zone) => [
    zone
      .slice(zone.lastIndexOf('/') + 1)
      .replaceAll('_', ' ')
      .toLowerCase(),
    zone,
  ]),
)

/**
 * The IANA zone that a sender means by `Europe/Berlin`, `Berlin` or `Eastern Time (US & Canada)`; else the text itself.
 */
export function zoneNamed(text: string): string {
  if (isTimezone(text)) return text
  const name = text.trim().toLowerCase()
  return CITIES.get(name) ?? (Object.hasOwn(RAILS, name) ? RAILS[name]! : text)
}
