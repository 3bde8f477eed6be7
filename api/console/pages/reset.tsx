import { SchemaForm } from '../components/schema-form.tsx'
import { errorsOf, type FormErrors } from '../forms/errors.ts'
import type { Form } from '../forms/form.ts'
import { fieldsOf } from '../forms/schema-fields.ts'
import { toBody } from '../forms/to-body.ts'
import type { ConsoleRoute, Page } from '../route.ts'

const FIELDS = fieldsOf('requestPasswordReset', ['email'])

const page = (state: { typed?: Form; errors?: FormErrors }, status = 200): Page => ({
  title: 'Reset the password',
  status,
  isBare: true,
  content: (
    <>
      <h1>Reset the password</h1>
      <p class="muted">You get a link by mail. If the service sends none, your admin gets the request.</p>
      <SchemaForm
        action="/reset"
        fields={FIELDS}
        state={state}
        button="Ask for a link"
        cancel="/sign-in"
        label="Reset the password"
      />
    </>
  ),
})

export const resetRoutes: ConsoleRoute[] = [
  { method: 'GET', path: '/reset', isPublic: true, handler: async () => page({}) },
  {
    method: 'POST',
    path: '/reset',
    isPublic: true,
    async handler({ form, call }) {
      const answer = await call('POST', '/app/password-resets', toBody(FIELDS, form, { omitEmpty: true }))
      if (answer.status >= 400)
        return page({ typed: form, errors: errorsOf(answer, ['email']) }, answer.status)
      return {
        title: 'Reset the password',
        isBare: true,
        content: (
          <>
            <h1>Asked for</h1>
            <p>
              If {form.get('email')} has an account, a link is on its way. Without mail, an owner or admin of
              your organization finds the request in the audit log and can make a link for you.
            </p>
            <a class="button plain" href="/sign-in">
              Back to the sign-in
            </a>
          </>
        ),
      }
    },
  },
]
