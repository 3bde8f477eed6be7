import { DUPLICATES_BY, type DuplicateKind } from '../../../db/records/duplicates.ts'
import { LinkButton } from '../components/button.tsx'
import { Card } from '../components/card.tsx'
import { Empty } from '../components/empty.tsx'
import { PageHeader } from '../components/page-header.tsx'
import { Paging, Table } from '../components/table.tsx'
import { Tabs } from '../components/tabs.tsx'
import { Time } from '../components/time.tsx'
import { labelOf } from '../forms/field-spec.ts'
import { type RecordRow, titleOf } from '../records/record.ts'
import type { ConsoleRoute, List, Page, View } from '../route.ts'
import { mayWrite } from './record-list.tsx'

interface Group {
  value: string
  count: number
  records: RecordRow[]
}

const KINDS = Object.keys(DUPLICATES_BY) as DuplicateKind[]

/** A group has up to ten records: a page of these is no longer than one of records. */
const LIMIT = '10'

/** The records that may be duplicates, by what they have in common, and the way to merge them. */
export const duplicatePages: ConsoleRoute[] = KINDS.map((kind) => ({
  method: 'GET',
  path: `/records/${kind}/duplicates`,
  async handler(view) {
    const by = view.query.get('by') ?? DUPLICATES_BY[kind][0]
    const cursor = view.query.get('cursor')
    const query = new URLSearchParams({ by, limit: LIMIT, ...(cursor && { cursor }) })
    return page(view, kind, by, await view.read<List<Group>>(`/app/v1/objects/${kind}/duplicates?${query}`))
  },
}))

function page(view: View, kind: DuplicateKind, by: string, groups: List<Group>): Page {
  const path = `/records/${kind}/duplicates`
  const tabs = DUPLICATES_BY[kind].map((one) => ({ href: `${path}?by=${one}`, label: `Same ${one}` }))
  return {
    title: `Duplicates of ${kind}`,
    content: (
      <>
        <PageHeader
          title={`Possible duplicates of ${kind}`}
          crumbs={[{ href: `/records/${kind}`, label: labelOf(kind) }]}
          about="Records that have something in common. Compare two of them side by side, then merge them or leave them."
        />
        <Tabs label="What they have in common" tabs={tabs} current={`${path}?by=${by}`} />
        {groups.data.length === 0 && !groups.has_more && (
          <Empty icon="circle-check" title={`No two ${kind} have the same ${by}`} />
        )}
        {groups.data.length === 0 && groups.has_more && (
          <p class="muted">None among those that were compared so far: see the next page.</p>
        )}
        {groups.data.map((group) => (
          <GroupCard key={group.value} kind={kind} group={group} mayMerge={mayWrite(view, kind)} />
        ))}
        {(groups.data.length > 0 || groups.has_more) && <Paging list={groups} />}
      </>
    ),
  }
}

/** All are compared with the oldest, whose id and links stay. */
function GroupCard({ kind, group, mayMerge }: { kind: DuplicateKind; group: Group; mayMerge: boolean }) {
  const [oldest] = group.records
  return (
    <Card
      title={<span dir="auto">{group.value}</span>}
      actions={<span class="muted">{`${group.count.toLocaleString('en')} records`}</span>}
      flush
    >
      <Table
        label={group.value}
        rows={group.records}
        keyOf={({ id }) => id}
        columns={[
          {
            title: 'Name',
            cell: (record) => (
              <a href={`/records/${kind}/${record.id}`} dir="auto" title={titleOf(record)}>
                {titleOf(record)}
              </a>
            ),
          },
          {
            title: kind === 'contacts' ? 'Email' : 'Domain',
            cell: ({ email, domain }) => String(email ?? domain ?? ''),
          },
          { title: 'Phone', cell: ({ phone }) => String(phone ?? '') },
          { title: 'Created', cell: ({ created_at }) => <Time at={String(created_at)} /> },
          {
            title: '',
            align: 'right',
            cell: ({ id }) => {
              if (id === oldest!.id) return <span class="muted">the oldest</span>
              const query = new URLSearchParams({ record: oldest!.id, from: id })
              return (
                mayMerge && (
                  <div class="row-actions">
                    <LinkButton href={`/records/${kind}/merge?${query}`}>Compare</LinkButton>
                  </div>
                )
              )
            },
          },
        ]}
      />
    </Card>
  )
}
