import type { ComponentChildren } from 'preact'
import { usePage } from '../context.ts'
import { labelOf } from '../forms/field-spec.ts'

/** The filters of a list: a form whose state is the address, so that every view can be linked. */
export function Filters({ children, keep = [] }: { children: ComponentChildren; keep?: string[] }) {
  const { path, query } = usePage().view
  const isFiltered = [...query].some(
    ([name, value]) => value !== '' && !['cursor', 'done', ...keep].includes(name),
  )
  return (
    <form class="filters" method="get" action={path} aria-label="Filters">
      {keep
        .filter((name) => query.has(name))
        .map((name) => (
          <input type="hidden" name={name} value={query.get(name)!} key={name} />
        ))}
      {children}
      <button type="submit" class="button plain">
        Filter
      </button>
      {isFiltered && (
        <a class="button plain" href={path}>
          Clear
        </a>
      )}
    </form>
  )
}

export function SearchFilter({
  name = 'q',
  label = 'Search',
  min,
}: {
  name?: string
  label?: string
  min?: number
}) {
  const { query } = usePage().view
  return (
    <label class="search">
      {label}
      <input type="search" name={name} value={query.get(name) ?? ''} minLength={min} placeholder="/" />
    </label>
  )
}

export function ChoiceFilter(props: {
  name: string
  choices: readonly (string | { id: string; name: string })[]
  label?: string
  /** What no choice means. */
  none?: string
}) {
  const { name, choices, label = labelOf(name), none = 'any' } = props
  const chosen = usePage().view.query.get(name) ?? ''
  return (
    <label>
      {label}
      <select name={name}>
        <option value="">{none}</option>
        {choices.map((choice) => {
          const { id, name: shown } = typeof choice === 'string' ? { id: choice, name: choice } : choice
          return (
            <option key={id} value={id} selected={id === chosen}>
              {shown}
            </option>
          )
        })}
      </select>
    </label>
  )
}

export function DateFilter({ name, label }: { name: string; label: string }) {
  const { query } = usePage().view
  return (
    <label>
      {label}
      <input type="date" name={name} value={query.get(name) ?? ''} />
    </label>
  )
}

export function TextFilter({ name, label = labelOf(name) }: { name: string; label?: string }) {
  const { query } = usePage().view
  return (
    <label>
      {label}
      <input type="text" name={name} value={query.get(name) ?? ''} />
    </label>
  )
}
