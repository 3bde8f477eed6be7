import { ErrorSummary, Field } from '../components/field.tsx'
import { PostForm } from '../components/post-form.tsx'
import { errorsOf, type FormErrors, NO_ERRORS } from '../forms/errors.ts'
import type { FieldSpec } from '../forms/field-spec.ts'
import { Form } from '../forms/form.ts'
import { fieldsOf } from '../forms/schema-fields.ts'
import type { ConsoleRoute, Page, View } from '../route.ts'
import { resumePage } from './resume.tsx'

const FIELDS = fieldsOf('signIn', ['email', 'password'])

/** The interrupted form, as JSON: its fields must not mix with those of the sign-in. */
const KEPT = 'kept'

interface SignIn {
  /** Where to go after it. */
  next: string
  /** The fields of a form that was interrupted. */
  kept?: [string, string][] | undefined
  hasEnded?: boolean
  typed?: Form
  errors?: FormErrors
  status?: number
}

export async function signInPage({ signsUp }: View, given: SignIn): Promise<Page> {
  const { next, kept, hasEnded, typed = new Form(), errors = NO_ERRORS, status = 200 } = given
  const mayMake = await signsUp()
  return {
    title: 'Sign in',
    status,
    isBare: true,
    content: (
      <>
        <h1>Sign in to agx</h1>
        {hasEnded && (
          <p class="notice amber" role="alert">
            Your session has ended. Sign in: nothing you typed is lost.
          </p>
        )}
        <PostForm action="/sign-in" class="form" label="Sign in">
          <ErrorSummary errors={errors} labels={labels(FIELDS)} />
          <input type="hidden" name="next" value={next} />
          {kept && <input type="hidden" name={KEPT} value={JSON.stringify(kept)} />}
          <Field spec={{ ...FIELDS[0]!, type: 'email' }} value={{ text: typed.get('email') }} autofocus />
          <Field spec={{ ...FIELDS[1]!, type: 'secret' }} value={{ text: '' }} />
          <div class="form-actions">
            <button type="submit" class="button primary">
              Sign in
            </button>
          </div>
        </PostForm>
        <p class="muted">
          <a href="/reset">Forgot the password?</a>{' '}
          {mayMake ? (
            <>
              No account yet? <a href="/sign-up">Sign up</a>
            </>
          ) : (
            'No account yet? Ask an admin of your organization for an invitation.'
          )}
        </p>
      </>
    ),
  }
}

export const labels = (fields: readonly FieldSpec[]) =>
  new Map(fields.map(({ name, label }) => [name, label]))

/** An address of the console: it must not lead to another host. */
export const safeNext = (next: string): string => (/^\/(?![/\\])[^\p{Cc}]*$/u.test(next) ? next : '/')

export const signInRoutes: ConsoleRoute[] = [
  {
    method: 'GET',
    path: '/sign-in',
    isPublic: true,
    handler: async (view) => {
      const next = safeNext(view.query.get('next') ?? '/')
      return view.session ? { redirect: next } : signInPage(view, { next })
    },
  },
  {
    method: 'POST',
    path: '/sign-in',
    isPublic: true,
    async handler(view) {
      const { form } = view
      const next = safeNext(form.get('next'))
      const kept = keptIn(form)
      // Without the session that it replaces: the operation authenticates itself.
      const answer = await view.call('POST', '/app/session', {
        email: form.get('email'),
        password: form.get('password'),
      })
      if (answer.status >= 400) {
        const errors = errorsOf(answer, ['email', 'password'])
        return signInPage(view, { next, kept, typed: form, errors, status: answer.status })
      }
      view.setHeader('Set-Cookie', answer.header('set-cookie')!)
      const { csrf_token, organization } = answer.body as {
        csrf_token: string
        organization: { name: string }
      }
      if (!kept) return { redirect: next }
      return resumePage(view, { csrf_token, organization_name: organization.name }, next, kept)
    },
  },
  {
    method: 'POST',
    path: '/sign-out',
    async handler(view) {
      const answer = await view.call('DELETE', '/app/session')
      const cookie = answer.header('set-cookie')
      if (cookie) view.setHeader('Set-Cookie', cookie)
      return { redirect: '/sign-in' }
    },
  },
]

function keptIn(form: View['form']): [string, string][] | undefined {
  if (!form.has(KEPT)) return undefined
  try {
    const pairs: unknown = JSON.parse(form.get(KEPT))
    return Array.isArray(pairs) && pairs.every(isPair) ? pairs : undefined
  } catch {
    return undefined
  }
}

const isPair = (pair: unknown): pair is [string, string] =>
  Array.isArray(pair) && pair.length === 2 && pair.every((part) => typeof part === 'string')
