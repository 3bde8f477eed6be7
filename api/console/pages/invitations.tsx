import { LinkButton } from '../components/button.tsx'
import { PageHeader } from '../components/page-header.tsx'
import { type FormState, SchemaForm } from '../components/schema-form.tsx'
import { Secret } from '../components/secret.tsx'
import { errorsOf } from '../forms/errors.ts'
import { Form } from '../forms/form.ts'
import { fieldsOf } from '../forms/schema-fields.ts'
import { toBody } from '../forms/to-body.ts'
import type { ConsoleRoute, Page } from '../route.ts'
import { MEMBERS } from './members.tsx'

const NAMES = ['email', 'role']
const FIELDS = fieldsOf('createInvitation', NAMES).map((field) =>
  field.name === 'email' ? { ...field, type: 'email' as const } : field,
)
const HERE = { href: MEMBERS, label: 'Members' }
/** The least role comes first in the form. */
const NEW = new Form([['role', 'member']])

/** Invites a person, again or for the first time, and withdraws an invitation. */
export const invitationPages: ConsoleRoute[] = [
  {
    method: 'GET',
    path: `${MEMBERS}/invite`,
    formOf: 'createInvitation',
    handler: async () => formPage({ typed: NEW }),
  },
  {
    method: 'POST',
    path: `${MEMBERS}/invite`,
    async handler({ form, call }) {
      const answer = await call('POST', '/app/invitations', toBody(FIELDS, form, { omitEmpty: true }))
      if (answer.status >= 400)
        return formPage({ typed: form, errors: errorsOf(answer, NAMES) }, answer.status)
      const { email, link } = answer.body as { email: string; link?: string }
      return link ? linkPage(email, link) : { redirect: `${MEMBERS}?done=invited` }
    },
  },
  {
    method: 'POST',
    path: `${MEMBERS}/invitations/{invitation_id}/withdraw`,
    async handler({ change, params }) {
      await change('DELETE', `/app/invitations/${params.invitation_id}`)
      return { redirect: `${MEMBERS}?done=withdrawn` }
    },
  },
]

const formPage = (state: FormState, status = 200): Page => ({
  title: 'Invite a person',
  status,
  content: (
    <>
      <PageHeader
        title="Invite a person"
        crumbs={[HERE]}
        about="The person gets a link that works once, within 7 days. A new invitation of the same address replaces the former one."
      />
      <SchemaForm
        action={`${MEMBERS}/invite`}
        fields={FIELDS}
        state={state}
        button="Invite"
        cancel={MEMBERS}
        label="Invite a person"
      />
    </>
  ),
})

/** A service without mails: the link is shown once, in the answer of the form, and is in no address. */
const linkPage = (email: string, link: string): Page => ({
  title: 'Invitation',
  status: 201,
  content: (
    <>
      <PageHeader title={`Invitation of ${email}`} crumbs={[HERE]} />
      <Secret label="The link for the person" text={link}>
        <p>This service sends no mails: give the link to {email}, and to nobody else.</p>
      </Secret>
      <div class="actions">
        <LinkButton href={MEMBERS}>Done</LinkButton>
      </div>
    </>
  ),
})
