import { LinkButton } from '../components/button.tsx'
import type { Page, View } from '../route.ts'

const TITLES: Record<number, string> = {
  403: 'Your role does not allow this',
  404: 'This page does not exist',
  429: 'Too many requests',
  503: 'The service is busy',
}

interface ErrorBody {
  error?: { message?: string; hint?: string; request_id?: string }
  detail?: { loc: (string | number)[]; msg: string }[]
}

/** A refusal: what happened, what one can do, and the id of the request for whoever looks for it in the log. */
export function errorPage(
  view: View,
  { status, body }: { status: number; body: Record<string, unknown> },
): Page {
  const { error = {}, detail = [] } = body as ErrorBody
  const title = TITLES[status] ?? (status >= 500 ? 'Something went wrong' : 'This was not possible')
  return {
    title,
    status,
    content: (
      <>
        <h1>{title}</h1>
        <div class="notice red" role="alert">
          <p>{[error.message, error.hint].filter(Boolean).join('. ')}</p>
          {detail.length > 0 && (
            <ul>
              {detail.map(({ loc, msg }) => (
                <li key={loc.join('.')}>
                  {loc.slice(1).join('.')}: {msg}
                </li>
              ))}
            </ul>
          )}
        </div>
        {status === 403 && view.session && (
          <p class="muted">
            You are signed in as {view.session.role} of {view.session.organization_name}. An owner or admin
            can do this, or change your role.
          </p>
        )}
        <p class="muted">
          Request <code>{error.request_id}</code>
        </p>
        <div class="actions">
          <LinkButton href={view.session ? '/' : '/sign-in'}>{view.session ? 'Home' : 'Sign in'}</LinkButton>
        </div>
      </>
    ),
  }
}
