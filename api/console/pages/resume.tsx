import type { VNode } from 'preact'
import { v7 as uuidv7 } from 'uuid'
import type { Session } from '../../../db/access/sessions.ts'
import { labelOf } from '../forms/field-spec.ts'
import { CSRF_FIELD, KEY_FIELD } from '../forms/form.ts'
import type { Page } from '../route.ts'

/** What this page needs of a session. */
type Resumed = Pick<Session, 'csrf_token' | 'organization_name'>

/** A form whose session ended while it was filled in, with what was typed: it is sent when its author says so. */
export function resumePage(_view: unknown, session: Resumed, action: string, kept: [string, string][]): Page {
  return {
    title: 'Send it again',
    isBare: true,
    content: (
      <>
        <h1>Nothing you typed is lost</h1>
        <p>
          Your session had ended or changed before the form was sent. You are signed in now, in{' '}
          <strong dir="auto">{session.organization_name}</strong>.
        </p>
        <form method="post" action={action} class="form" aria-label="Send it again" data-once>
          <input type="hidden" name={CSRF_FIELD} value={session.csrf_token} />
          <input type="hidden" name={KEY_FIELD} value={uuidv7()} />
          {hidden(kept)}
          <dl class="facts">
            {kept
              .filter(([name, value]) => value !== '' && !/[:\s]|^(was|version)\b/.test(name))
              .slice(0, 20)
              .map(([name, value]) => (
                <div key={name}>
                  <dt>{labelOf(name)}</dt>
                  <dd dir="auto">{value.length > 200 ? `${value.slice(0, 200)}…` : value}</dd>
                </div>
              ))}
          </dl>
          <div class="form-actions">
            <button type="submit" class="button primary">
              Send it now
            </button>
            <a class="button plain" href="/">
              Discard it
            </a>
          </div>
        </form>
      </>
    ),
  }
}

/** The fields of an interrupted form, in a form that carries them on. */
export const hidden = (kept: [string, string][]): VNode[] =>
  kept.map(([name, value], i) => <input type="hidden" name={name} value={value} key={`${name} ${i}`} />)
