import { ErrorSummary, Marked } from '../components/field.tsx'
import { PostForm } from '../components/post-form.tsx'
import { ScopeMatrix } from '../components/scope-matrix.tsx'
import { errorsOf, type FormErrors, NO_ERRORS } from '../forms/errors.ts'
import { policyWithFormTarget } from '../policy.ts'
import type { ConsoleRoute, Page, View } from '../route.ts'

interface Request {
  client: { id: string; name: string; host: string | null }
  receiver: { host: string; is_local: boolean }
  role: string
  scopes: string[]
  denied_to: string
}

/** The parameters of a client that are read. Others have no effect, as the standard wants. */
const PARAMETERS = [
  'response_type',
  'client_id',
  'redirect_uri',
  'code_challenge',
  'code_challenge_method',
  'scope',
  'state',
  'resource',
]

/**
 * Not ticked at first: with them an assistant that was deceived by what it reads could send data elsewhere, or show what
 * is masked.
 */
const UNTICKED = ['workflows:author', 'webhooks:write', 'records:reveal', 'records:backdate']

const HERE = '/oauth/authorize'

/** The authorization endpoint of OAuth: a member lets an assistant in, or not. Nothing happens by opening it. */
export const authorizePages: ConsoleRoute[] = [
  {
    method: 'GET',
    path: HERE,
    async handler(view) {
      const asked = pairsOf(view.query)
      const request = await checked(view, asked)
      const chosen = request.scopes.filter((scope) => !UNTICKED.includes(scope))
      return consentPage(view, { asked, request, chosen })
    },
  },
  {
    method: 'POST',
    path: HERE,
    // The person agrees to what the page says of the organization and role.
    reopens: ({ form }) => `${HERE}?${new URLSearchParams(pairsOf(form.typed()))}`,
    async handler(view) {
      const { form } = view
      const asked = pairsOf(form.typed())
      const chosen = form.all('scopes')
      const answer = await view.call('POST', '/app/grants', { ...Object.fromEntries(asked), scopes: chosen })
      if (answer.status < 400) return { redirect: answer.body.redirect_to as string }
      const request = await checked(view, asked)
      return consentPage(
        view,
        { asked, request, chosen, errors: errorsOf(answer, ['scopes']) },
        answer.status,
      )
    },
  },
]

const pairsOf = (pairs: Iterable<[string, string]>) =>
  [...pairs].filter(([name]) => PARAMETERS.includes(name))

/** Throws Refused: the reason is shown here, and leads nowhere else. */
const checked = ({ read }: View, asked: [string, string][]) =>
  read<Request>(`/app/authorization?${new URLSearchParams(asked)}`)

interface Consent {
  asked: [string, string][]
  request: Request
  chosen: readonly string[]
  errors?: FormErrors
}

function consentPage(view: View, { asked, request, chosen, errors }: Consent, status = 200): Page {
  const { client, receiver, role, scopes, denied_to } = request
  const session = view.session!
  view.setHeader('Content-Security-Policy', policyWithFormTarget(denied_to))
  return {
    title: 'Connect an assistant',
    status,
    isBare: true,
    content: (
      <>
        <h1>
          Connect <span dir="auto">{client.name}</span>?
        </h1>
        <p>
          It will act for you, <strong dir="auto">{session.user_name}</strong>, as {role} of{' '}
          <strong dir="auto">{session.organization_name}</strong>, with what you tick below and your role has,
          until you disconnect it under Connected assistants.
        </p>
        <dl class="facts">
          <div>
            <dt>The access goes to</dt>
            <dd>
              <strong>{receiver.host}</strong>
              {receiver.is_local && ', a program on this computer'}
            </dd>
          </div>
          <div>
            <dt>Described by</dt>
            <dd>{client.host ?? 'itself: anybody can use this name'}</dd>
          </div>
        </dl>
        <p class="notice amber">
          Only go on if you have just asked for this yourself, and know {receiver.host}.
        </p>
        <PostForm action={HERE} class="form" label="Connect an assistant">
          <ErrorSummary errors={errors ?? NO_ERRORS} labels={new Map([['scopes', 'Scopes']])} />
          {asked.map(([name, value]) => (
            <input type="hidden" name={name} value={value} key={name} />
          ))}
          <fieldset id="f-scopes">
            <legend>Scopes</legend>
            <p class="help">
              <Marked text="Each level includes read. With `workflows:author` or `webhooks:write` it can send what it reads to other services; with `workflows:author` or `workflows:run` it can reach all records, because a workflow acts for the organization." />
            </p>
            <ScopeMatrix name="scopes" chosen={chosen} offered={scopes} />
          </fieldset>
          <div class="form-actions">
            <button type="submit" class="button primary" data-when-seen>
              Connect
            </button>
            <a class="button plain" href={denied_to}>
              Refuse
            </a>
          </div>
        </PostForm>
        <p class="muted">
          Another organization? <a href="/organizations">Switch to it</a>, then connect again.
        </p>
      </>
    ),
  }
}
