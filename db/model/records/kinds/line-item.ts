import {
  add,
  type Decimal,
  decimalText,
  divide,
  integer,
  multiply,
  negate,
  parseDecimal,
} from '../../../../workflows/shared/decimal.ts'
import { placesOf } from '../../../../workflows/shared/exchange-rates.ts'
import type { Issue } from '../../errors.ts'
import type { Draft, KindDefinition } from '../kind.ts'
import { recurring_interval } from '../recurring-interval.ts'
import { fitsMoney, MONEY_DIGITS, moneyText } from '../values.ts'

export const line_item: KindDefinition = {
  description: 'A position of a deal, whose amount is the sum of its line items.',
  upsertKeys: [],
  sums: { field: 'amount', over: 'deal_id', into: 'amount' },
  fields: {
    deal_id: { type: 'reference', to: 'deals', description: 'The deal. null: it counts in none.' },
    product_id: {
      type: 'reference',
      to: 'products',
      copies: ['name', 'unit_price', 'tax_percent', 'recurring_interval'],
      description:
        'The product. A new line item copies from it the name, price with currency, tax and interval that are not given.',
    },
    name: { type: 'text', filled: true, description: 'What is sold. Required without a product.' },
    quantity: { type: 'decimal', default: '1', description: 'The number of units.' },
    unit_price: {
      type: 'money',
      filled: true,
      description: 'The price of one unit without tax. Required without the price of a product.',
    },
    currency: {
      type: 'currency',
      description: 'An ISO 4217 code, the same for all of a deal. Default: that of the deal.',
    },
    discount_percent: {
      type: 'decimal',
      max: 100,
      description: 'A discount, in percent; excludes `discount_amount`.',
    },
    discount_amount: {
      type: 'money',
      description: 'A discount on the whole line item; excludes `discount_percent`.',
    },
    tax_percent: { type: 'decimal', max: 100, description: 'The tax rate, in percent.' },
    recurring_interval,
    amount: {
      type: 'money',
      readOnly: true,
      filled: true,
      description: 'quantity × unit_price − discount, without tax, rounded to the unit of the currency.',
    },
    tax_amount: { type: 'money', readOnly: true, filled: true, description: 'The tax on `amount`.' },
  },
  derive: ({ next }) => amountsOf(next),
  check: ({ next }) => {
    const missing = ['name', 'unit_price'].filter((name) => next[name] == null)
    return missing.length > 0 ? missing.map(missingIssue) : amountIssues(next)
  },
  columns: ['deal_id', 'quantity', 'unit_price', 'amount', 'currency', 'recurring_interval'],
  dimensions: ['product_id', 'recurring_interval', 'currency'],
  synonyms: {
    name: 'lineitemname name itemname productname item description position bezeichnung',
    quantity: 'quantity qty units count menge anzahl quantite cantidad',
    unit_price: 'unitprice price itemprice listprice salesprice einzelpreis preis',
    currency: 'currency currencycode lineitemcurrencycode currencyisocode',
    discount_percent: 'discountpercent discountpercentage discount rabatt',
    discount_amount: 'discountamount totaldiscount',
    tax_percent: 'taxpercent tax taxrate vat vatrate mwst',
    recurring_interval: 'recurringinterval billingfrequency recurringbillingfrequency billingperiod',
    tags: 'tags tag labels',
    external_id: 'externalid lineitemid opportunitylineitemid',
  },
  example: { name: 'Installation', quantity: '2', unit_price: '1250.00', currency: 'GBP', tax_percent: '20' },
}

const missingIssue = (name: string): Issue => ({
  loc: ['body', name],
  msg: 'is required, unless it is copied from the product',
  type: 'missing',
  ...(name === 'unit_price' && {
    hint: 'the price of a product is copied only into a line item without another currency',
  }),
})

const decimal = (value: unknown): Decimal => parseDecimal(value) ?? integer(0)

/** Without discount and tax. */
const gross = ({ quantity, unit_price }: Draft['next']) => multiply(decimal(quantity), decimal(unit_price))

/** `amount` and `tax_amount`, each rounded half away from zero to the smallest unit of the currency. */
function amountsOf(next: Draft['next']) {
  const full = gross(next)
  const discount =
    next.discount_percent == null
      ? decimal(next.discount_amount)
      : multiply(full, percent(next.discount_percent))
  const places = typeof next.currency === 'string' ? placesOf(next.currency) : 2
  const amount = divide(add(full, negate(discount)), integer(1), places)
  const tax = divide(multiply(amount, percent(next.tax_percent)), integer(1), places)
  return { amount: moneyText(decimalText(amount)), tax_amount: moneyText(decimalText(tax)) }
}

const percent = (value: unknown): Decimal => {
  const { digits, places } = decimal(value)
  return { digits, places: places + 2 }
}

function amountIssues(next: Draft['next']): Issue[] {
  const { discount_amount, discount_percent } = next
  const issue = (name: string, msg: string, hint?: string): Issue[] => [
    { loc: ['body', name], msg, type: 'invalid_value', ...(hint && { hint }) },
  ]
  if (discount_amount != null && discount_percent != null)
    return issue(
      'discount_amount',
      'a line item has one discount: an amount or a percentage',
      'set the other to null',
    )
  const discount = decimal(discount_amount)
  const rest = add(gross(next), negate(discount))
  if (discount.digits < 0n || (discount.digits > 0n && rest.digits < 0n))
    return issue('discount_amount', 'must be between 0 and quantity × unit_price')
  const { amount, tax_amount } = amountsOf(next)
  if (![amount, tax_amount].every(fitsMoney))
    return issue('quantity', `the amount would have more than ${MONEY_DIGITS} digits before the point`)
  return []
}
