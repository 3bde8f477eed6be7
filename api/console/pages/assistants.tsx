import { ConfirmButton } from '../components/button.tsx'
import { Empty } from '../components/empty.tsx'
import { PageHeader } from '../components/page-header.tsx'
import { Status } from '../components/status.tsx'
import { Paging, Table } from '../components/table.tsx'
import { Time } from '../components/time.tsx'
import { pageOf } from '../list-page.ts'
import type { ConsoleRoute, List, Page, View } from '../route.ts'

interface Grant {
  id: string
  client_id: string
  client_name: string
  user: { name: string }
  scopes: string[]
  last_used_at: string | null
  revoked_at: string | null
  expires_at: string
  created_at: string
}

const HERE = '/settings/assistants'

/** The assistants that were connected by OAuth: beside the keys, and ended like them. */
export const assistantPages: ConsoleRoute[] = [
  {
    method: 'GET',
    path: HERE,
    handler: async (view) => listPage(view, await view.read<List<Grant>>(pageOf(view, '/app/grants'))),
  },
  {
    method: 'POST',
    path: `${HERE}/{grant_id}/disconnect`,
    async handler({ change, params }) {
      await change('DELETE', `/app/grants/${params.grant_id}`)
      return { redirect: `${HERE}?done=disconnected` }
    },
  },
]

const stateOf = ({ revoked_at, expires_at }: Grant) => {
  if (revoked_at) return 'revoked'
  return Date.parse(expires_at) < Date.now() ? 'expired' : 'active'
}

function listPage({ baseUrl }: View, grants: List<Grant>): Page {
  return {
    title: 'Connected assistants',
    content: (
      <>
        <PageHeader
          title="Connected assistants"
          about={`Add ${baseUrl}/mcp to Claude, ChatGPT, Cursor or another assistant: it asks you to sign in here. It acts for the person who connected it, within that person's role.`}
        />
        {grants.data.length === 0 ? (
          <Empty icon="key-round" title="No assistant is connected">
            <p>
              How to connect one is in the <a href="/docs/agents">documentation</a>.
            </p>
          </Empty>
        ) : (
          <>
            <Table
              label="Connected assistants"
              rows={grants.data}
              keyOf={({ id }) => id}
              columns={[
                {
                  title: 'Assistant',
                  cell: ({ client_name, client_id }) => (
                    <strong dir="auto" title={client_id}>
                      {client_name}
                    </strong>
                  ),
                },
                { title: 'Acts for', cell: ({ user }) => <span dir="auto">{user.name}</span> },
                {
                  title: 'Scopes',
                  cell: ({ scopes }) => <span title={scopes.join(', ')}>{scopes.join(', ')}</span>,
                },
                { title: 'Status', cell: (grant) => <Status of={stateOf(grant)} /> },
                { title: 'Last used', cell: ({ last_used_at }) => <Time at={last_used_at} /> },
                { title: 'Connected', cell: ({ created_at }) => <Time at={created_at} /> },
                {
                  title: '',
                  align: 'right',
                  cell: (grant) =>
                    stateOf(grant) === 'active' ? (
                      <ConfirmButton
                        action={`${HERE}/${grant.id}/disconnect`}
                        question={`“${grant.client_name}” is refused at once. It can ask to be connected again.`}
                        confirm="Disconnect it"
                        look="danger"
                      >
                        Disconnect
                      </ConfirmButton>
                    ) : null,
                },
              ]}
            />
            <Paging list={grants} />
          </>
        )}
      </>
    ),
  }
}
