import { kindNames } from '../../../db/model/records/kinds/index.ts'
import { ActionButton, LinkButton } from '../components/button.tsx'
import { Empty } from '../components/empty.tsx'
import { PageHeader } from '../components/page-header.tsx'
import { Paging, Table } from '../components/table.tsx'
import { Time } from '../components/time.tsx'
import { labelOf } from '../forms/field-spec.ts'
import { pageOf } from '../list-page.ts'
import { type RecordRow, titleOf } from '../records/record.ts'
import type { ConsoleRoute, List, Page } from '../route.ts'

/** The deleted records of each kind, which can be restored within 30 days. */
export const deletedRecordPages: ConsoleRoute[] = kindNames.map((kind) => ({
  method: 'GET',
  path: `/records/${kind}/deleted`,
  handler: async (view) =>
    page(kind, await view.read<List<RecordRow>>(pageOf(view, `/app/v1/objects/${kind}?deleted=true`))),
}))

const page = (kind: string, records: List<RecordRow>): Page => ({
  title: `Deleted ${labelOf(kind).toLowerCase()}`,
  content: (
    <>
      <PageHeader
        title={`Deleted ${labelOf(kind).toLowerCase()}`}
        crumbs={[{ href: `/records/${kind}`, label: labelOf(kind) }]}
        about="They can be restored within 30 days, with their links. Then they are gone for good."
      />
      {records.data.length === 0 ? (
        <Empty icon="history" title="Nothing is deleted">
          <p>A deleted record is here for 30 days.</p>
          <LinkButton href={`/records/${kind}`}>Go to the {labelOf(kind).toLowerCase()}</LinkButton>
        </Empty>
      ) : (
        <>
          <Table
            label={`Deleted ${kind}`}
            rows={records.data}
            keyOf={({ id }) => id}
            columns={[
              {
                title: 'Name',
                cell: (record) => (
                  <strong dir="auto" title={titleOf(record).slice(0, 400)}>
                    {titleOf(record).slice(0, 200)}
                  </strong>
                ),
              },
              { title: 'Deleted', cell: ({ deleted_at }) => <Time at={String(deleted_at)} /> },
              { title: 'Created', cell: ({ created_at }) => <Time at={String(created_at)} /> },
              {
                title: '',
                align: 'right',
                cell: ({ id }) => (
                  <div class="row-actions">
                    <ActionButton action={`/records/${kind}/${id}/restore`}>Restore</ActionButton>
                  </div>
                ),
              },
            ]}
          />
          <Paging list={records} />
        </>
      )}
    </>
  ),
})
