import type Koa from 'koa'
import { LINK_PATHS, type LinkKind } from '../../db/access/link-tokens.ts'
import { htmlPage, pagePolicy } from '../http/html-page.ts'

/**
 * The HTML forms at the links of invitations, password resets and sign-ups. GET returns a static form, so a program
 * that follows links neither redeems a link nor learns whether it is valid. The form posts JSON to the same path.
 */

const NAME = `<label for="name">Your name (only if you have no account)</label><input id="name" name="name" maxlength="200" autocomplete="name">`
const password = (label: string, autocomplete: 'current-password' | 'new-password') =>
  `<label for="password">${label}</label><input id="password" name="password" type="password" required autocomplete="${autocomplete}">`

const FORMS: Record<LinkKind, { title: string; fields: string; button: string; done: string }> = {
  invitation: {
    title: 'Accept the invitation',
    fields: NAME + password('A new password, or that of your account if you have one', 'current-password'),
    button: 'Accept',
    done: 'You have joined the organization and are signed in.',
  },
  password_reset: {
    title: 'Choose a new password',
    fields: password('New password', 'new-password'),
    button: 'Save',
    done: 'The new password is set. Sign in with it.',
  },
  sign_up: {
    title: 'Confirm the sign-up',
    fields: password(
      'The password that you gave for it, or that of your account if you have one',
      'current-password',
    ),
    button: 'Confirm',
    done: 'The organization is made, and you are signed in.',
  },
}

/** Sends the non-empty fields and shows the message of the response. */
const SCRIPT = `
const form = document.querySelector('form'), said = document.querySelector('[role=status]')
form.addEventListener('submit', async (event) => {
  event.preventDefault()
  said.textContent = ''
  const fields = [...new FormData(form)].filter(([, value]) => value !== '')
  try {
    const answer = await fetch(location.pathname, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json', Accept: 'application/json' },
      body: JSON.stringify(Object.fromEntries(fields)),
    })
    const { error, detail = [] } = await answer.json()
    if (answer.ok) form.remove()
    said.textContent = answer.ok
      ? said.dataset.done
      : [error.message, ...detail.map((one) => one.loc.at(-1) + ': ' + one.msg), error.hint].filter(Boolean).join('. ')
  } catch {
    said.textContent = 'The service did not answer: try again.'
  }
})
`
const POLICY = pagePolicy(SCRIPT)

const PAGES = Object.entries(LINK_PATHS).map(([kind, path]) => {
  const { title, fields, button, done } = FORMS[kind as LinkKind]
  const [start, end] = path('{token}').split('{token}') as [string, string]
  return {
    route: `${start}{token}${end}`,
    pattern: new RegExp(`^${start}[\\w-]+${end}$`),
    html: htmlPage(
      title,
      `<h1>${title}</h1><form method="post">${fields}<button class="approve">${button}</button></form>
<p role="status" data-done="${done}"></p><script>${SCRIPT}</script>`,
    ),
  }
})

/** Responds to GET of a link with its form. @returns false for any other request. */
export function answersLink(ctx: Koa.Context, path: string): boolean {
  if (ctx.method !== 'GET' && ctx.method !== 'HEAD') return false
  const page = PAGES.find(({ pattern }) => pattern.test(path))
  if (!page) return false
  ctx.state.route = page.route
  ctx.set({
    'Referrer-Policy': 'no-referrer',
    'X-Robots-Tag': 'noindex',
    'Content-Security-Policy': POLICY,
  })
  ctx.type = 'text/html; charset=utf-8'
  ctx.body = page.html
  return true
}
