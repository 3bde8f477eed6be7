import { ActionButton, ConfirmButton, LinkButton } from '../components/button.tsx'
import { Card } from '../components/card.tsx'
import { PageHeader } from '../components/page-header.tsx'
import { Paging, Table } from '../components/table.tsx'
import { Time } from '../components/time.tsx'
import { mayCall } from '../forms/allowed.ts'
import { pageOf } from '../list-page.ts'
import type { ConsoleRoute, List, Page, View } from '../route.ts'

interface Invitation {
  id: string
  email: string
  role: string
  expires_at: string
  mail: { sent_at: string | null; problem: string | null } | null
}

export interface Member {
  id: string
  name: string
  email: string
  role: string
  created_at: string
}

export const MEMBERS = '/settings/members'

/** Who belongs to the organization, and who is invited. */
export const memberListPages: ConsoleRoute[] = [
  {
    method: 'GET',
    path: MEMBERS,
    async handler(view) {
      const [members, invitations] = await Promise.all([
        view.read<List<Member>>(pageOf(view, '/app/members')),
        view.readIfAllowed<List<Invitation>>('/app/invitations?limit=50'),
      ])
      return page(view, members, invitations)
    },
  },
]

function page({ session }: View, members: List<Member>, invitations: List<Invitation> | undefined): Page {
  const mayInvite = mayCall(session!.role, 'createInvitation')
  return {
    title: 'Members',
    content: (
      <>
        <PageHeader
          title="Members"
          about="Owners may do everything, admins all but what concerns owners and the plan; members work with records and run workflows."
        >
          {mayInvite && (
            <LinkButton href={`${MEMBERS}/invite`} look="primary" icon="plus">
              Invite a person
            </LinkButton>
          )}
        </PageHeader>
        <Table
          label="Members"
          rows={members.data}
          keyOf={({ id }) => id}
          columns={[
            {
              title: 'Name',
              cell: ({ id, name }) => (
                <>
                  <a href={`${MEMBERS}/${id}`} dir="auto" title={name}>
                    {name}
                  </a>
                  {id === session!.user_id && <span class="muted"> you</span>}
                </>
              ),
            },
            { title: 'Email', cell: ({ email }) => <span title={email}>{email}</span> },
            { title: 'Role', cell: ({ role }) => role },
            { title: 'Joined', cell: ({ created_at }) => <Time at={created_at} /> },
          ]}
        />
        <Paging list={members} />
        {invitations && <Invitations of={invitations} />}
      </>
    ),
  }
}

const isOpen = ({ expires_at }: Invitation) => Date.parse(expires_at) > Date.now()

function mailOf({ mail }: Invitation): string {
  if (!mail) return 'no mails here: the link was shown'
  if (mail.sent_at) return 'sent'
  return mail.problem ? `not sent yet: ${mail.problem}` : 'on its way'
}

const Invitations = ({ of: invitations }: { of: List<Invitation> }) => (
  <Card title="Invitations" flush>
    {invitations.data.length === 0 ? (
      <p class="muted">Nobody is invited at the moment.</p>
    ) : (
      <Table
        label="Invitations"
        rows={invitations.data}
        keyOf={({ id }) => id}
        columns={[
          { title: 'Email', cell: ({ email }) => <strong title={email}>{email}</strong> },
          { title: 'Role', cell: ({ role }) => role },
          { title: 'Mail', cell: (one) => <span title={mailOf(one)}>{mailOf(one)}</span> },
          {
            title: 'Expires',
            cell: (one) => (isOpen(one) ? <Time at={one.expires_at} /> : <span class="muted">expired</span>),
          },
          { title: '', align: 'right', cell: (one) => <InvitationActions of={one} /> },
        ]}
      />
    )}
  </Card>
)

/** A new invitation of the same address replaces the former one. */
const InvitationActions = ({ of: { id, email, role } }: { of: Invitation }) => (
  <div class="row-actions">
    <ActionButton action={`${MEMBERS}/invite`} fields={{ email, role }}>
      Resend
    </ActionButton>
    <ConfirmButton
      action={`${MEMBERS}/invitations/${id}/withdraw`}
      question={`The link that ${email} got no longer works.`}
      confirm="Withdraw the invitation"
      look="danger"
    >
      Withdraw
    </ConfirmButton>
  </div>
)
