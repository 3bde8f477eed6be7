import type { ComponentChildren } from 'preact'
import { usePage } from '../context.ts'
import type { List } from '../route.ts'
import { Icon } from './icon.tsx'
import { Scrollable } from './scrollable.tsx'

export interface Column<T> {
  title: string
  /** The name by which the list is sorted; undefined: it cannot be sorted by it. */
  sort?: string | undefined
  align?: 'right'
  cell: (row: T) => ComponentChildren
}

/** A table of rows. Its wrapper scrolls on narrow screens, also by the keyboard. */
export function Table<T>(props: {
  label: string
  columns: Column<T>[]
  rows: T[]
  keyOf: (row: T) => string
}) {
  const { label, columns, rows, keyOf } = props
  return (
    <Scrollable class="table" label={label}>
      <table>
        <thead>
          <tr>
            {columns.map((column) => (
              <th key={column.title} scope="col" class={column.align}>
                {column.sort ? (
                  <SortLink title={column.title} by={column.sort} />
                ) : (
                  column.title || <span class="hidden">Actions</span>
                )}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={keyOf(row)}>
              {columns.map((column) => (
                <td key={column.title} class={column.align}>
                  {column.cell(row)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </Scrollable>
  )
}

/** The address of this page with other parameters; undefined removes one. */
export function withQuery(query: URLSearchParams, changes: Record<string, string | undefined>): string {
  const next = new URLSearchParams(query)
  next.delete('done')
  for (const [name, value] of Object.entries(changes))
    if (value === undefined) next.delete(name)
    else next.set(name, value)
  return `?${next}`
}

function SortLink({ title, by }: { title: string; by: string }) {
  const { query } = usePage().view
  const isSorted = query.get('sort') === by
  const isDescending = query.get('order') !== 'asc'
  const order = isSorted && isDescending ? 'asc' : 'desc'
  return (
    <a class="sort" href={withQuery(query, { sort: by, order, cursor: undefined })}>
      {title}
      {isSorted && <Icon name={isDescending ? 'arrow-down' : 'arrow-up'} />}
      {isSorted && <span class="hidden">{isDescending ? ', descending' : ', ascending'}</span>}
    </a>
  )
}

/** How many there are, and the next page by its cursor. Back is that of the browser. */
export function Paging({ list }: { list: List<unknown> }) {
  const { query } = usePage().view
  const { total, total_is_estimate: isEstimate, next_cursor: cursor } = list
  return (
    <nav class="paging" aria-label="Pages">
      <span class="muted">
        {total === null ? '' : `${isEstimate ? 'about ' : ''}${total.toLocaleString('en')} in all`}
      </span>
      {query.has('cursor') && (
        <a class="button plain" href={withQuery(query, { cursor: undefined })}>
          First page
        </a>
      )}
      {cursor && (
        <a class="button plain" href={withQuery(query, { cursor })} rel="next">
          Next page
        </a>
      )}
    </nav>
  )
}
