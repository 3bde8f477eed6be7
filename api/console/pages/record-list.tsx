import type { ComponentChildren } from 'preact'
import { ROLE_SCOPES } from '../../../db/model/access/roles.ts'
import type { KindName } from '../../../db/model/records/kind.ts'
import { kindNames, kinds } from '../../../db/model/records/kinds/index.ts'
import { firstCharacters } from '../../../db/model/records/values.ts'
import { DUPLICATES_BY } from '../../../db/records/duplicates.ts'
import { FILTER_OPERATORS, type FilterOperator } from '../../../workflows/shared/operators.ts'
import { allows } from '../../http/scopes.ts'
import { ActionButton, LinkButton } from '../components/button.tsx'
import { Code } from '../components/code.tsx'
import { Empty } from '../components/empty.tsx'
import { SearchFilter } from '../components/filters.tsx'
import { Icon } from '../components/icon.tsx'
import { iconOfKind } from '../components/navigation.tsx'
import { PageHeader } from '../components/page-header.tsx'
import { type Column, Paging, Table, withQuery } from '../components/table.tsx'
import { usePage } from '../context.ts'
import { errorsOf } from '../forms/errors.ts'
import { labelOf } from '../forms/field-spec.ts'
import { pageOf } from '../list-page.ts'
import { namesOf, type RecordRow, type RecordSchema, schemaOf, titleOf } from '../records/record.ts'
import { Value } from '../records/value.tsx'
import type { ConsoleRoute, List, Page, View } from '../route.ts'
import { ExportButton } from './export-list.tsx'

/** What the address says to the page only; everything else is a parameter of the list of the API. */
const OWN = ['columns', 'limit', 'done', 'id', 'field', 'operator', 'value']

/** Fields that are no column: the name is the first one, and these are too large or have no text. */
const NO_COLUMN = ['id', 'custom_fields', 'version']

export const mayWrite = ({ session }: View, kind: string) =>
  allows(ROLE_SCOPES[session!.role], `${kind as KindName}:write`)

export const isKind = (kind: string | undefined): kind is KindName => kindNames.some((one) => one === kind)

export const recordListPages: ConsoleRoute[] = kindNames.map((kind) => ({
  method: 'GET',
  path: `/records/${kind}`,
  async handler(view) {
    const filter = addedFilter(view.query)
    if (filter) return { redirect: `/records/${kind}${filter}` }
    const schema = await schemaOf(view, kind)
    const names = [...new Set(view.query.keys())].filter((name) => !OWN.includes(name))
    const answer = await view.call('GET', pageOf(view, `/app/v1/objects/${kind}`, names))
    if (answer.status >= 400) return refusedPage(view, schema, answer)
    const list = answer.body as unknown as List<RecordRow>
    const columns = columnsOf(view, schema)
    const references = list.data.flatMap((record) =>
      columns.flatMap(({ name, references }): [string, unknown][] =>
        references ? [[references, record[name]]] : [],
      ),
    )
    return page(view, schema, { list, columns, names: await namesOf(view, references) })
  },
}))

/** The form that adds a filter names a field, an operator and a value: together they are one parameter of the list. */
function addedFilter(query: URLSearchParams): string | undefined {
  const [field, operator, value] = ['field', 'operator', 'value'].map((name) => query.get(name))
  if (!field || !operator) return undefined
  const next = new URLSearchParams(query)
  for (const name of ['field', 'operator', 'value', 'cursor', 'done']) next.delete(name)
  next.append(
    operator === 'eq' ? field : `${field}[${operator}]`,
    value || (operator === 'is_null' ? 'true' : ''),
  )
  return `?${next}`
}

interface Shown {
  name: string
  label: string
  type: string
  sortable: boolean
  references: string | null
}

/** The fields that can be columns, and also filters. */
function choices({ fields, custom_fields }: RecordSchema): Shown[] {
  const own = fields
    .filter(({ name }) => !NO_COLUMN.includes(name))
    .map((field) => ({ ...field, label: labelOf(field.name) }))
  const custom = custom_fields.map((field) => ({
    ...field,
    name: `custom_fields.${field.name}`,
    references: null,
  }))
  return [...own, ...custom]
}

function columnsOf({ query }: View, schema: RecordSchema): Shown[] {
  const chosen = query.getAll('columns')
  const names = chosen.length > 0 ? chosen : kinds[schema.entity].columns
  return choices(schema).filter(({ name }) => names.includes(name))
}

/** A cell shows the beginning of a text: a page of whole notes has 11 MB, and takes the API 0.4 s. */
const shortened = (value: unknown): unknown =>
  typeof value === 'string' && value.length > SHOWN ? `${firstCharacters(value, SHOWN)}…` : value

const SHOWN = 200

const valueAt = (record: RecordRow, name: string): unknown =>
  name.startsWith('custom_fields.') ? record.custom_fields[name.slice('custom_fields.'.length)] : record[name]

function page(
  view: View,
  schema: RecordSchema,
  { list, columns, names }: { list: List<RecordRow>; columns: Shown[]; names: Map<string, string> },
): Page {
  const { entity } = schema
  const table: Column<RecordRow>[] = [
    {
      title: 'Name',
      cell: (record) => (
        <a href={`/records/${entity}/${record.id}`} dir="auto" title={titleOf(record)}>
          {titleOf(record)}
        </a>
      ),
    },
    ...columns.map(
      (column): Column<RecordRow> => ({
        title: column.label,
        sort: column.sortable ? column.name : undefined,
        ...(['money', 'integer', 'number'].includes(column.type) && { align: 'right' as const }),
        cell: (record) => (
          <Value
            value={shortened(valueAt(record, column.name))}
            shape={column}
            names={names}
            record={record}
          />
        ),
      }),
    ),
  ]
  const isAll = ![...view.query.keys()].some(
    (name) => !['columns', 'sort', 'order', 'done', 'id'].includes(name),
  )
  return {
    title: labelOf(entity),
    content: (
      <>
        <Header view={view} schema={schema} />
        <Deleted view={view} kind={entity} />
        <Tools schema={schema} columns={columns} />
        {list.data.length > 0 ? (
          <>
            <Table label={labelOf(entity)} rows={list.data} keyOf={({ id }) => id} columns={table} />
            <Paging list={list} />
          </>
        ) : (
          <Nothing view={view} schema={schema} isAll={isAll} />
        )}
        <Further view={view} kind={entity} />
      </>
    ),
  }
}

function Header({ view, schema }: { view: View; schema: RecordSchema }) {
  const { entity, singular } = schema
  return (
    <PageHeader title={labelOf(entity)}>
      {entity === 'deals' && <LinkButton href="/records/deals/board">Board</LinkButton>}
      {mayWrite(view, entity) && <LinkButton href={`/imports/new?entity=${entity}`}>Import</LinkButton>}
      <ExportButton entity={entity} query={selectionOf(view.query)} />
      {mayWrite(view, entity) && (
        <LinkButton href={`/records/${entity}/new`} look="primary" icon="plus">
          New {singular}
        </LinkButton>
      )}
    </PageHeader>
  )
}

/** The filters and the sort of the address, as an export takes them: those of a repeated parameter are a list. */
function selectionOf(query: URLSearchParams): Record<string, unknown> {
  const names = [...new Set(query.keys())].filter((name) => ![...OWN, 'cursor', 'count'].includes(name))
  return Object.fromEntries(
    names.map((name): [string, unknown] => {
      const values = query.getAll(name)
      return [name, values.length > 1 ? values : values[0]]
    }),
  )
}

/** What else there is of a kind. */
function Further({ view, kind }: { view: View; kind: KindName }) {
  if (!mayWrite(view, kind)) return null
  return (
    <p class="muted">
      {Object.hasOwn(DUPLICATES_BY, kind) && (
        <>
          <a href={`/records/${kind}/duplicates`}>Possible duplicates</a>,{' '}
        </>
      )}
      <a href={`/records/${kind}/deleted`}>deleted {labelOf(kind).toLowerCase()}</a>
    </p>
  )
}

/** The way back after a delete. */
function Deleted({ view: { query }, kind }: { view: View; kind: string }) {
  const id = query.get('id')
  if (query.get('done') !== 'deleted' || !id) return null
  return (
    <div>
      <ActionButton action={`/records/${kind}/${encodeURIComponent(id)}/restore`}>
        Undo the delete
      </ActionButton>
    </div>
  )
}

function Nothing({
  view: { baseUrl },
  schema: { entity, singular, description },
  isAll,
}: {
  view: View
  schema: RecordSchema
  isAll: boolean
}) {
  if (!isAll)
    return (
      <Empty icon="search" title="Nothing matches">
        <p>No record has all of this. Remove a filter or change the search.</p>
        <LinkButton href={`/records/${entity}`}>Show all</LinkButton>
      </Empty>
    )
  return (
    <Empty icon={iconOfKind(entity)} title={`No ${singular} yet`}>
      <p>{description}</p>
      <Code
        text={`curl ${baseUrl}/v1/objects/${entity} -H "Authorization: Bearer $KEY"`}
        label="the request of this list"
      />
    </Empty>
  )
}

/** A filter in the address that the API refuses: the page says why, and shows how to remove it. */
function refusedPage(
  view: View,
  schema: RecordSchema,
  answer: { status: number; body: Record<string, unknown> },
): Page {
  const { byField, others } = errorsOf(answer, [])
  return {
    title: labelOf(schema.entity),
    status: answer.status,
    content: (
      <>
        <Header view={view} schema={schema} />
        <Tools schema={schema} columns={columnsOf(view, schema)} />
        <div class="notice red" role="alert">
          {[...others, ...[...byField.values()].flat()].map((text) => (
            <p key={text}>{text}</p>
          ))}
        </div>
      </>
    ),
  }
}

const CONTROLS = ['q', 'sort', 'order', 'cursor', 'match', 'limit', 'count', ...OWN]

/** The search, the filters and the columns: their state is the address. */
function Tools({ schema, columns }: { schema: RecordSchema; columns: Shown[] }) {
  const all = choices(schema)
  return (
    <div class="tools">
      <ListForm label="Search" without={['q']}>
        <SearchFilter />
        <button type="submit" class="button plain">
          Search
        </button>
      </ListForm>
      <details class="menu">
        <summary class="button plain">
          <Icon name="plus" /> Filter
        </summary>
        <ListForm label="Add a filter" without={['field', 'operator', 'value']} name="popover">
          <label>
            Field
            <select name="field">
              {all.map(({ name, label }) => (
                <option key={name} value={name}>
                  {label}
                </option>
              ))}
            </select>
          </label>
          <label>
            Is
            <select name="operator">
              {FILTER_OPERATORS.map((operator) => (
                <option key={operator} value={operator}>
                  {WORDS[operator]}
                </option>
              ))}
            </select>
          </label>
          <label>
            Value
            <input name="value" type="text" />
          </label>
          <button type="submit" class="button primary">
            Add the filter
          </button>
        </ListForm>
      </details>
      <details class="menu">
        <summary class="button plain">Columns</summary>
        <ListForm label="Columns" without={['columns']} name="popover">
          <div class="boxes">
            {all.map(({ name, label }) => (
              <label class="box" key={name}>
                <input
                  type="checkbox"
                  name="columns"
                  value={name}
                  checked={columns.some((column) => column.name === name)}
                />
                {label}
              </label>
            ))}
          </div>
          <button type="submit" class="button primary">
            Show these
          </button>
        </ListForm>
      </details>
      <FilterChips labels={new Map(all.map(({ name, label }) => [name, label]))} />
    </div>
  )
}

/** How the choice of operators and the filters that apply name them. */
const WORDS: Record<FilterOperator, string> = {
  eq: 'is',
  ne: 'is not',
  contains: 'contains',
  starts_with: 'starts with',
  in: 'is one of (a,b)',
  nin: 'is none of (a,b)',
  gt: 'is more than',
  gte: 'is at least',
  lt: 'is less than',
  lte: 'is at most',
  between: 'is between (a,b)',
  has: 'has',
  has_not: 'does not have',
  not_since: 'is before (or never)',
  is_null: 'is empty',
}

/** A form that changes some parameters of the address, and keeps the others. */
function ListForm(props: { label: string; without: string[]; name?: string; children: ComponentChildren }) {
  const { path, query } = usePage().view
  const kept = [...query].filter(([name]) => ![...props.without, 'cursor', 'done', 'id'].includes(name))
  return (
    <form method="get" action={path} class={`filters ${props.name ?? ''}`} aria-label={props.label}>
      {kept.map(([name, value]) => (
        <input type="hidden" name={name} value={value} key={`${name} ${value}`} />
      ))}
      {props.children}
    </form>
  )
}

/** The filters in the address, each with a link that removes it. */
function FilterChips({ labels }: { labels: Map<string, string> }) {
  const { query } = usePage().view
  const filters = [...query].filter(([name]) => !CONTROLS.includes(name))
  if (filters.length === 0 && !query.get('q')) return null
  return (
    <div class="chips">
      {filters.map(([name, value]) => {
        const [, field = name, operator = 'eq'] = /^([^[]+)\[(\w+)\]$/.exec(name) ?? []
        const known = FILTER_OPERATORS.find((one) => one === operator)
        const words = known ? WORDS[known].replace(/ \(.*/, '') : operator
        const text = [labels.get(field) ?? field, words, operator === 'is_null' ? '' : value].join(' ')
        return (
          <a
            class="chip"
            key={`${name} ${value}`}
            href={without(query, name, value)}
            title="Remove the filter"
          >
            <span dir="auto">{text}</span>
            <Icon name="x" />
            <span class="hidden">: remove the filter</span>
          </a>
        )
      })}
      {query.get('q') && (
        <a
          class="chip"
          href={withQuery(query, { q: undefined, cursor: undefined })}
          title="Remove the search"
        >
          <span dir="auto">“{query.get('q')}”</span>
          <Icon name="x" />
        </a>
      )}
    </div>
  )
}

function without(query: URLSearchParams, name: string, value: string): string {
  const rest = [...query].filter(
    ([key, one]) => !(key === name && one === value) && key !== 'cursor' && key !== 'done',
  )
  return `?${new URLSearchParams(rest)}`
}
