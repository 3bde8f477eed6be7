import { ConfirmButton, LinkButton } from '../components/button.tsx'
import { Card, Facts } from '../components/card.tsx'
import { PageHeader } from '../components/page-header.tsx'
import { PostForm } from '../components/post-form.tsx'
import { Refusal } from '../components/refusal.tsx'
import { type FormState, SchemaForm } from '../components/schema-form.tsx'
import { Secret } from '../components/secret.tsx'
import { Time } from '../components/time.tsx'
import { mayCall } from '../forms/allowed.ts'
import { errorsOf } from '../forms/errors.ts'
import { Form } from '../forms/form.ts'
import { fieldsOf } from '../forms/schema-fields.ts'
import { toBody } from '../forms/to-body.ts'
import { type ConsoleRoute, type List, type Page, Refused, type View } from '../route.ts'
import { MEMBERS, type Member } from './members.tsx'

const FIELDS = fieldsOf('updateMember', ['role'])
const HERE = { href: MEMBERS, label: 'Members' }

type Answer = Awaited<ReturnType<View['call']>>

/** A member: the role, a link for a new password, and the removal with what becomes of the member's records. */
export const memberPages: ConsoleRoute[] = [
  {
    method: 'GET',
    path: `${MEMBERS}/{user_id}`,
    handler: async (view) => page(view, await found(view), {}),
  },
  {
    method: 'POST',
    path: `${MEMBERS}/{user_id}`,
    async handler(view) {
      const { form, call, params } = view
      const answer = await call('PATCH', `/app/members/${params.user_id}`, toBody(FIELDS, form))
      if (answer.status < 400) return { redirect: `${MEMBERS}/${params.user_id}?done=saved` }
      return page(view, await found(view), { typed: form, errors: errorsOf(answer, ['role']) }, answer)
    },
  },
  {
    method: 'POST',
    path: `${MEMBERS}/{user_id}/password-reset`,
    async handler(view) {
      const answer = await view.call('POST', `/app/members/${view.params.user_id}/password-reset`)
      const all = await found(view)
      if (answer.status >= 400) return page(view, all, {}, answer)
      const { link } = answer.body as { link?: string }
      if (!link) return { redirect: `${MEMBERS}/${all.member.id}?done=mailed` }
      return linkPage(all.member, link)
    },
  },
  {
    method: 'POST',
    path: `${MEMBERS}/{user_id}/remove`,
    async handler(view) {
      const { form, call, params } = view
      const path = `/app/members/${params.user_id}`
      const heirs = heirsOf(form)
      const query = heirs === undefined ? '' : `?${new URLSearchParams({ hand_over: heirs })}`
      const answer = await call('DELETE', path + query)
      if (answer.status < 400) return { redirect: `${MEMBERS}?done=member_removed` }
      return page(view, await found(view), { typed: form }, answer)
    },
  },
]

/** What the form chooses for the records: as `hand_over` of the operation takes it. */
function heirsOf(form: Form): string | undefined {
  const how = form.get('hand_over')
  if (how === 'members') return form.all('heir').join(',')
  return how === 'nobody' ? 'nobody' : undefined
}

interface Found {
  member: Member
  others: Member[]
}

/** The most others to whom records can be given by the form: more have no room on a page. */
const MOST_HEIRS = 200

/** The API has no address of one member: the list is read until it is found. Throws Refused. */
async function found({ read, params }: View): Promise<Found> {
  const others: Member[] = []
  let member: Member | undefined
  for (let cursor: string | null = ''; cursor !== null && !(member && others.length >= MOST_HEIRS); ) {
    const query: URLSearchParams = new URLSearchParams({ limit: '200', ...(cursor && { cursor }) })
    const list: List<Member> = await read<List<Member>>(`/app/members?${query}`)
    for (const one of list.data)
      if (one.id === params.user_id) member = one
      else others.push(one)
    cursor = list.next_cursor
  }
  if (!member)
    throw new Refused({
      status: 404,
      body: { error: { message: 'the member does not exist', hint: 'see the list of members' } },
    })
  return { member, others: others.slice(0, MOST_HEIRS) }
}

function page(view: View, { member, others }: Found, state: FormState, refusal?: Answer): Page {
  const { name, email, role, created_at } = member
  const may = (operation: string) => mayCall(view.session!.role, operation)
  return {
    title: name,
    status: refusal?.status ?? 200,
    content: (
      <>
        <PageHeader title={<span dir="auto">{name}</span>} crumbs={[HERE]} />
        {refusal && !state.errors && <Refusal of={refusal} />}
        <Card title="Member">
          <Facts
            of={[
              ['Email', email],
              ['Role', role],
              ['Joined', <Time at={created_at} key="joined" />],
            ]}
          />
        </Card>
        {may('updateMember') && (
          <Card title="Role">
            <SchemaForm
              action={`${MEMBERS}/${member.id}`}
              fields={FIELDS}
              state={state.errors ? state : { stored: { role } }}
              button="Change the role"
              label="Role"
            />
          </Card>
        )}
        {may('createPasswordReset') && <Password of={member} />}
        {may('removeMember') && <Removal of={member} others={others} typed={state.typed ?? new Form()} />}
      </>
    ),
  }
}

const Password = ({ of: { id, name } }: { of: Member }) => (
  <Card title="Password">
    <p>
      For a member who cannot sign in: a link to choose a new password, which works once, within 24 hours.
    </p>
    <div class="actions">
      <ConfirmButton
        action={`${MEMBERS}/${id}/password-reset`}
        question={`Makes a link for “${name}”. All sessions of the member end when it is used.`}
        confirm="Make the link"
      >
        Reset the password
      </ConfirmButton>
    </div>
  </Card>
)

function Removal({ of: { id, name }, others, typed }: { of: Member; others: Member[]; typed: Form }) {
  const how = typed.get('hand_over')
  const choice = (value: string, text: string) => (
    <label class="box">
      <input type="radio" name="hand_over" value={value} checked={how === value} />
      {text}
    </label>
  )
  return (
    <Card title="Remove from the organization">
      <p>
        <span dir="auto">{name}</span> is signed out at once, and can no longer see anything here. API keys
        that the member has made go on working, and notes keep their author.
      </p>
      <PostForm action={`${MEMBERS}/${id}/remove`} class="form" label="Remove from the organization">
        <fieldset>
          <legend>Records that the member owns or is assigned</legend>
          {choice('', 'There are none: do not remove the member otherwise')}
          {choice('nobody', 'They belong to nobody afterwards')}
          {others.length > 0 && choice('members', 'Give them to these members, in turn')}
          {others.length > 0 && (
            <div class="boxes">
              {others.map((one) => (
                <label class="box" key={one.id}>
                  <input
                    type="checkbox"
                    name="heir"
                    value={one.id}
                    checked={typed.all('heir').includes(one.id)}
                  />
                  <span dir="auto">{one.name}</span> <span class="muted">{one.email}</span>
                </label>
              ))}
            </div>
          )}
        </fieldset>
        <div class="form-actions">
          <button type="submit" class="button danger">
            Remove the member
          </button>
        </div>
      </PostForm>
    </Card>
  )
}

/** A service without mails: the link is shown once. */
const linkPage = ({ id, name, email }: Member, link: string): Page => ({
  title: 'New password',
  status: 201,
  content: (
    <>
      <PageHeader title={`New password for ${name}`} crumbs={[HERE]} />
      <Secret label="The link for the member" text={link}>
        <p>This service sends no mails: give the link to {email}, and to nobody else.</p>
      </Secret>
      <div class="actions">
        <LinkButton href={`${MEMBERS}/${id}`}>Done</LinkButton>
      </div>
    </>
  ),
})
