import type { ComponentChildren } from 'preact'
import { v7 as uuidv7 } from 'uuid'
import { usePage } from '../context.ts'
import { CSRF_FIELD, KEY_FIELD } from '../forms/form.ts'

/** A form with the CSRF token of the session, and a key that makes a second click the same request. */
export function PostForm(props: {
  action: string
  id?: string
  class?: string
  /** The form has a file, which must be its last field. */
  hasFile?: boolean
  label?: string
  children: ComponentChildren
}) {
  const { action, id, class: name, hasFile, label, children } = props
  const { session } = usePage().view
  return (
    <form
      method="post"
      action={action}
      id={id}
      class={name}
      enctype={hasFile ? 'multipart/form-data' : undefined}
      aria-label={label}
      data-once
    >
      {session && <input type="hidden" name={CSRF_FIELD} value={session.csrf_token} />}
      <input type="hidden" name={KEY_FIELD} value={uuidv7()} />
      {children}
    </form>
  )
}
