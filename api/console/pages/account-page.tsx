import { ActionButton, ConfirmButton } from '../components/button.tsx'
import { Card, Facts } from '../components/card.tsx'
import { PageHeader } from '../components/page-header.tsx'
import { Paging, Table } from '../components/table.tsx'
import { Time } from '../components/time.tsx'
import { pageOf } from '../list-page.ts'
import type { ConsoleRoute, List, Page, View } from '../route.ts'

interface UserSession {
  id: string
  current: boolean
  organization: { id: string; name: string }
  ip: string | null
  user_agent: string | null
  created_at: string
  expires_at: string
}

const HERE = '/settings/account'

/** The user's own name, password and sessions. */
export const accountPages: ConsoleRoute[] = [
  {
    method: 'GET',
    path: HERE,
    handler: async (view) => page(view, await view.read<List<UserSession>>(pageOf(view, '/app/sessions'))),
  },
  {
    method: 'POST',
    path: `${HERE}/password`,
    async handler({ change, session }) {
      await change('POST', '/app/password-resets', { email: session!.email })
      return { redirect: `${HERE}?done=reset_requested` }
    },
  },
  {
    method: 'POST',
    path: `${HERE}/sessions/{session_id}/end`,
    async handler({ change, params }) {
      await change('DELETE', `/app/sessions/${params.session_id}`)
      return { redirect: `${HERE}?done=ended` }
    },
  },
]

function page({ session }: View, sessions: List<UserSession>): Page {
  const { user_name, email, role, organization_name } = session!
  return {
    title: 'Your account',
    content: (
      <>
        <PageHeader title="Your account" />
        <Card
          title="You"
          actions={
            <ConfirmButton
              action={`${HERE}/password`}
              question={`Sends ${email} a link to choose a new password. All your sessions end when you use it. A service without mails tells an admin instead, who gives you the link.`}
              confirm="Ask for the link"
            >
              Change the password
            </ConfirmButton>
          }
        >
          <Facts
            of={[
              [
                'Name',
                <span dir="auto" key="name">
                  {user_name}
                </span>,
              ],
              ['Email', email],
              ['Role', role],
              [
                'Organization',
                <span dir="auto" key="organization">
                  {organization_name}
                </span>,
              ],
            ]}
          />
        </Card>
        <h2>Where you are signed in</h2>
        <Table
          label="Sessions"
          rows={sessions.data}
          keyOf={({ id }) => id}
          columns={[
            {
              title: 'Browser',
              cell: ({ user_agent: agent }) => <span title={agent ?? ''}>{agent ?? 'unknown'}</span>,
            },
            { title: 'Address', cell: ({ ip }) => ip ?? '' },
            {
              title: 'Organization',
              cell: ({ organization: { name } }) => (
                <span dir="auto" title={name}>
                  {name}
                </span>
              ),
            },
            { title: 'Signed in', cell: ({ created_at }) => <Time at={created_at} /> },
            { title: 'Ends', cell: ({ expires_at }) => <Time at={expires_at} /> },
            {
              title: '',
              align: 'right',
              cell: ({ id, current }) =>
                current ? (
                  <span class="muted">this one</span>
                ) : (
                  <div class="row-actions">
                    <ActionButton action={`${HERE}/sessions/${id}/end`}>End</ActionButton>
                  </div>
                ),
            },
          ]}
        />
        <Paging list={sessions} />
      </>
    ),
  }
}
