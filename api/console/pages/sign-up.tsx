import { SchemaForm } from '../components/schema-form.tsx'
import { errorsOf, type FormErrors } from '../forms/errors.ts'
import type { Form } from '../forms/form.ts'
import { fieldsOf } from '../forms/schema-fields.ts'
import { toBody } from '../forms/to-body.ts'
import type { ConsoleRoute, Page } from '../route.ts'

const FIELDS = fieldsOf('signUp', ['organization_name', 'name', 'email', 'password'], {
  name: 'Your name',
}).map((field) => (field.name === 'password' ? { ...field, type: 'secret' as const } : field))
const NAMES = FIELDS.map(({ name }) => name)

const page = (state: { typed?: Form; errors?: FormErrors }, status = 200): Page => ({
  title: 'Sign up',
  status,
  isBare: true,
  content: (
    <>
      <h1>Sign up</h1>
      <p class="muted">Makes an organization, with you as its owner.</p>
      <SchemaForm action="/sign-up" fields={FIELDS} state={state} button="Sign up" label="Sign up" />
      <p class="muted">
        Have an account? <a href="/sign-in">Sign in</a>
      </p>
    </>
  ),
})

const sent = (email: string, isMailed: boolean): Page => ({
  title: 'Sign up',
  isBare: true,
  content: (
    <>
      <h1>{isMailed ? 'Confirm your address' : 'Sign in now'}</h1>
      <p>
        {isMailed
          ? `We sent a mail to ${email}. Open its link, and give the same password.`
          : 'Sign in with the address and the password that you gave.'}
      </p>
      {!isMailed && (
        <a class="button primary" href="/sign-in">
          Sign in
        </a>
      )}
    </>
  ),
})

const closed: Page = {
  title: 'Sign up',
  status: 404,
  isBare: true,
  content: (
    <>
      <h1>Sign-up is closed</h1>
      <p>Ask an admin of your organization for an invitation.</p>
      <a class="button primary" href="/sign-in">
        Sign in
      </a>
    </>
  ),
}

export const signUpRoutes: ConsoleRoute[] = [
  {
    method: 'GET',
    path: '/sign-up',
    isPublic: true,
    handler: async ({ signsUp }) => ((await signsUp()) ? page({}) : closed),
  },
  {
    method: 'POST',
    path: '/sign-up',
    isPublic: true,
    async handler({ form, call }) {
      const answer = await call('POST', '/app/signup', toBody(FIELDS, form, { omitEmpty: true }))
      if (answer.status >= 400) return page({ typed: form, errors: errorsOf(answer, NAMES) }, answer.status)
      return sent(form.get('email'), answer.body.confirmation === 'mail')
    },
  },
]
