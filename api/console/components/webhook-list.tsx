import type { ComponentChildren } from 'preact'
import { includesRole } from '../../../db/model/access/roles.ts'
import type { List, Page, View } from '../route.ts'
import { LinkButton } from './button.tsx'
import { Empty } from './empty.tsx'
import type { IconName } from './icon.tsx'
import { PageHeader } from './page-header.tsx'
import { type Column, Paging, Table } from './table.tsx'
import { Time } from './time.tsx'

interface Webhook {
  id: string
  name: string
  created_at: string
}

export const mayChangeWebhooks = ({ session }: View): boolean => includesRole(session!.role, 'admin')

/**
 * The page that lists the incoming or the outgoing webhooks; `none`: what they are good for, shown while there is none.
 */
export function webhookList<T extends Webhook>(
  view: View,
  webhooks: List<T>,
  {
    root,
    kind,
    icon,
    about,
    none,
    columns,
  }: {
    root: string
    kind: 'incoming' | 'outgoing'
    icon: IconName
    about: string
    none: ComponentChildren
    /** Between the name and the creation. */
    columns: Column<T>[]
  },
): Page {
  const title = `${kind === 'incoming' ? 'Incoming' : 'Outgoing'} webhooks`
  const add = mayChangeWebhooks(view) && (
    <LinkButton href={`${root}/new`} look="primary" icon="plus">
      New webhook
    </LinkButton>
  )
  const name: Column<T> = {
    title: 'Name',
    cell: ({ id, name }) => (
      <a href={`${root}/${id}`} dir="auto" title={name}>
        {name}
      </a>
    ),
  }
  const created: Column<T> = { title: 'Created', cell: ({ created_at }) => <Time at={created_at} /> }
  return {
    title,
    content: (
      <>
        <PageHeader title={title} about={about}>
          {webhooks.data.length > 0 && add}
        </PageHeader>
        {webhooks.data.length === 0 ? (
          <Empty icon={icon} title={`No ${kind} webhook yet`}>
            <p>{none}</p>
            {add}
          </Empty>
        ) : (
          <>
            <Table
              label={title}
              rows={webhooks.data}
              keyOf={({ id }) => id}
              columns={[name, ...columns, created]}
            />
            <Paging list={webhooks} />
          </>
        )}
      </>
    ),
  }
}
