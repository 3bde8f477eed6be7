import { Chips } from '../components/chips.tsx'
import { Time } from '../components/time.tsx'

/** What a value needs to be shown: its type, the kind that it refers to, and the names of those records. */
export interface Shape {
  type: string
  references?: string | null
}

/** A value of a record. */
export function Value({
  value,
  shape,
  names,
  record,
}: {
  value: unknown
  shape: Shape
  names: Map<string, string>
  record: Record<string, unknown>
}) {
  if (value === null || value === undefined || value === '') return null
  const { type, references } = shape
  if (typeof value === 'string') {
    if (type === 'datetime') return <Time at={value} />
    if (type === 'money') return <span class="number">{money(value, record.currency)}</span>
    if (type === 'email') return <a href={`mailto:${value}`}>{value}</a>
    if (type === 'phone') return <a href={`tel:${value.replace(/[^+\d]/g, '')}`}>{value}</a>
    if (type === 'url' && /^https?:\/\//.test(value))
      return (
        <a href={value} rel="noreferrer noopener" target="_blank">
          {value}
        </a>
      )
    if (references === 'users') return <span dir="auto">{names.get(value) ?? value}</span>
    if (references)
      return (
        <a href={`/records/${references}/${value}`} dir="auto">
          {names.get(value) ?? value}
        </a>
      )
    return (
      <span dir="auto" title={value.length > 40 ? value : undefined}>
        {value}
      </span>
    )
  }
  if (typeof value === 'boolean') return <>{value ? 'yes' : 'no'}</>
  if (typeof value === 'number') return <span class="number">{value.toLocaleString('en')}</span>
  if (Array.isArray(value)) return value.length === 0 ? null : <Chips of={value.map(String)} />
  const { id, type: by } = value as { id?: string; type?: string }
  if (type === 'actor') return <span title={id}>{by?.replace('_', ' ')}</span>
  const parts = Object.values(value).filter(Boolean)
  return <span dir="auto">{type === 'address' ? parts.join(', ') : JSON.stringify(value)}</span>
}

/** The decimal as it is stored, with its thousands apart: a float would round it. */
export function money(value: string, currency: unknown): string {
  const [whole = '', cents] = value.split('.')
  const grouped = whole.replace(/\B(?=(\d{3})+$)/g, ',')
  return [cents === undefined ? grouped : `${grouped}.${cents}`, currency].filter(Boolean).join(' ')
}
