import { ActionButton } from '../components/button.tsx'
import { PageHeader } from '../components/page-header.tsx'
import { Table } from '../components/table.tsx'
import type { ConsoleRoute } from '../route.ts'
import { safeNext } from './sign-in.tsx'

interface OwnSession {
  organization: { id: string; name: string }
  organizations: { id: string; name: string; role: string }[]
}

interface Preferences {
  task_reminder_mails: boolean
}

const YEAR = 31_536_000

/** The switch of the organization, preferences in it, and the choice of the theme. */
export const accountRoutes: ConsoleRoute[] = [
  {
    method: 'GET',
    path: '/organizations',
    async handler({ read }) {
      const [{ organization, organizations }, { task_reminder_mails: mailed }] = await Promise.all([
        read<OwnSession>('/app/session'),
        read<Preferences>('/app/preferences'),
      ])
      return {
        title: 'Organizations',
        content: (
          <>
            <PageHeader
              title="Organizations"
              about="Those that you belong to. A session works in one at a time."
            />
            <Table
              label="Organizations"
              rows={organizations}
              keyOf={({ id }) => id}
              columns={[
                { title: 'Name', cell: ({ name }) => <span dir="auto">{name}</span> },
                { title: 'Your role', cell: ({ role }) => role },
                {
                  title: '',
                  align: 'right',
                  cell: ({ id }) =>
                    id === organization.id ? (
                      <span class="muted">current</span>
                    ) : (
                      <ActionButton action="/organizations" fields={{ organization_id: id }}>
                        Switch
                      </ActionButton>
                    ),
                },
              ]}
            />
            <h2>Reminders</h2>
            <p>
              The reminders of tasks that are assigned to you in <span dir="auto">{organization.name}</span>{' '}
              are {mailed ? 'mailed to you.' : 'not mailed to you.'}
            </p>
            <ActionButton action="/preferences" fields={{ task_reminder_mails: String(!mailed) }}>
              {mailed ? 'Stop these mails' : 'Mail them to me'}
            </ActionButton>
          </>
        ),
      }
    },
  },
  {
    method: 'POST',
    path: '/organizations',
    async handler(view) {
      const body = { organization_id: view.form.get('organization_id') }
      const answer = await view.call('PUT', '/app/session/organization', body)
      const cookie = answer.header('set-cookie')
      if (cookie) view.setHeader('Set-Cookie', cookie)
      return { redirect: cookie ? '/?done=switched' : '/organizations' }
    },
  },
  {
    method: 'POST',
    path: '/preferences',
    async handler(view) {
      const body = { task_reminder_mails: view.form.get('task_reminder_mails') === 'true' }
      await view.change('PATCH', '/app/preferences', body)
      return { redirect: '/organizations' }
    },
  },
  {
    method: 'POST',
    path: '/theme',
    isPublic: true,
    async handler({ form, setHeader }) {
      const theme = ['light', 'dark'].find((one) => one === form.get('theme')) ?? 'system'
      setHeader('Set-Cookie', `agx_theme=${theme}; Path=/; Max-Age=${YEAR}; HttpOnly; SameSite=Lax`)
      return { redirect: safeNext(form.get('next')) }
    },
  },
]
