import type { KindDefinition } from '../kind.ts'
import { recurring_interval } from '../recurring-interval.ts'

export const product: KindDefinition = {
  description: 'A thing or service that is sold; line items of deals are made of it.',
  upsertKeys: [],
  fields: {
    name: { type: 'text', required: true, sorted: true, description: 'The name of the product.' },
    sku: { type: 'text', description: 'The article number.' },
    description: { type: 'text', max: 10_000, description: 'A description of the product.' },
    unit_price: {
      type: 'money',
      description: 'The price of one unit without tax, a decimal in `currency`.',
    },
    currency: {
      type: 'currency',
      description: 'An ISO 4217 code. Default: the currency of the organization.',
    },
    tax_percent: { type: 'decimal', max: 100, description: 'The tax rate, in percent.' },
    recurring_interval,
    active: { type: 'boolean', default: true, description: 'Whether the product is on sale.' },
  },
  columns: ['sku', 'unit_price', 'currency', 'recurring_interval', 'active'],
  dimensions: ['recurring_interval', 'currency'],
  isFoundByName: true,
  synonyms: {
    name: 'productname name title product item itemname produkt produktname artikel',
    sku: 'sku productcode hssku code articlenumber itemnumber artikelnummer partnumber',
    description: 'description productdescription details beschreibung',
    unit_price: 'unitprice price listprice standardprice amount preis stueckpreis prix precio',
    currency: 'currency currencycode currencyisocode',
    tax_percent: 'taxpercent tax taxrate vat vatrate mwst',
    recurring_interval: 'recurringinterval billingfrequency recurringbillingfrequency billingperiod',
    active: 'active isactive aktiv',
    tags: 'tags tag labels',
    external_id: 'externalid productid',
  },
  example: {
    name: 'Maintenance of an engine',
    sku: 'MNT-1',
    unit_price: '90.00',
    currency: 'GBP',
    recurring_interval: 'month',
  },
}
