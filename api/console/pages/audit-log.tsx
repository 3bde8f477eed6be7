import { AUDIT_ACTIONS } from '../../../db/access/audit-log.ts'
import { LinkButton } from '../components/button.tsx'
import { Empty } from '../components/empty.tsx'
import { ChoiceFilter, DateFilter, Filters, TextFilter } from '../components/filters.tsx'
import { PageHeader } from '../components/page-header.tsx'
import { Refusal } from '../components/refusal.tsx'
import { Paging, Table } from '../components/table.tsx'
import { Time } from '../components/time.tsx'
import { labelOf } from '../forms/field-spec.ts'
import { pageOf } from '../list-page.ts'
import { usersOf } from '../records/record.ts'
import type { ConsoleRoute, List } from '../route.ts'

interface Entry {
  id: string
  action: string
  actor: { type: string; id: string | null; name: string | null }
  target: { id: string; name: string }
  details: Record<string, unknown>
  created_at: string
}

const HERE = '/settings/audit-log'
const FILTERS = ['action', 'actor_id', 'target_id', 'from', 'to']

/** `key.rotated` as `Key: rotated`. */
const actionText = (action: string) => {
  const [target = '', verb = ''] = action.split('.')
  return `${labelOf(target)}: ${verb.replaceAll('_', ' ')}`
}
const ACTIONS = AUDIT_ACTIONS.map((id) => ({ id, name: actionText(id) }))

/** Who changed what of access and configuration. */
export const auditLogPages: ConsoleRoute[] = [
  {
    method: 'GET',
    path: HERE,
    formOf: 'listAuditLog',
    async handler(view) {
      const [answer, users] = await Promise.all([
        view.call('GET', pageOf(view, '/app/audit-log', FILTERS)),
        usersOf(view),
      ])
      const entries = answer.status < 400 ? (answer.body as unknown as List<Entry>) : undefined
      return {
        title: 'Audit log',
        status: answer.status,
        content: (
          <>
            <PageHeader
              title="Audit log"
              about="Every change of access and configuration, the newest first, kept for a year. Nobody can change it."
            />
            <Filters>
              <ChoiceFilter name="action" choices={ACTIONS} />
              <ChoiceFilter name="actor_id" choices={users} label="By" />
              <TextFilter name="target_id" label="Id of what changed" />
              <DateFilter name="from" label="From (UTC)" />
              <DateFilter name="to" label="To (UTC)" />
            </Filters>
            {!entries && <Refusal of={answer} />}
            {entries && entries.data.length > 0 && <Entries of={entries} />}
            {entries?.data.length === 0 && (
              <Empty icon="search" title="No entry matches">
                <LinkButton href={HERE}>Show all</LinkButton>
              </Empty>
            )}
          </>
        ),
      }
    },
  },
]

const Entries = ({ of: entries }: { of: List<Entry> }) => (
  <>
    <Table
      label="Audit log"
      rows={entries.data}
      keyOf={({ id }) => id}
      columns={[
        { title: 'When', cell: ({ created_at }) => <Time at={created_at} /> },
        {
          title: 'Who',
          cell: ({ actor: { type, name } }) => (
            <span dir="auto" title={name ?? type}>
              {name ?? type.replace('_', ' ')}
            </span>
          ),
        },
        { title: 'What', cell: ({ action }) => actionText(action) },
        {
          title: 'Of',
          cell: ({ target: { id, name } }) => (
            <a
              href={`${HERE}?${new URLSearchParams({ target_id: id })}`}
              dir="auto"
              title={`${name} (${id})`}
            >
              {name}
            </a>
          ),
        },
        {
          title: 'Details',
          cell: ({ details }) => {
            const text = detailsText(details)
            return (
              <span dir="auto" title={text.slice(0, IN_TITLE)}>
                {text.slice(0, SHOWN)}
              </span>
            )
          },
        },
      ]}
    />
    <Paging list={entries} />
  </>
)

/** Characters of the details in a cell, and in its title. */
const SHOWN = 80
const IN_TITLE = 400

/** `fields: name, url`. */
const detailsText = (details: Record<string, unknown>) =>
  Object.entries(details)
    .filter(([, value]) => value !== null)
    .map(([name, value]) => {
      const text = Array.isArray(value) ? value.join(', ') : value
      return `${labelOf(name)}: ${typeof text === 'string' ? text : JSON.stringify(text)}`
    })
    .join('; ')
