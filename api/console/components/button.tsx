import type { ComponentChildren } from 'preact'
import { Icon, type IconName } from './icon.tsx'
import { PostForm } from './post-form.tsx'

type Look = 'primary' | 'danger' | 'plain'

interface Content {
  look?: Look
  icon?: IconName
  children: ComponentChildren
}

const inside = ({ icon, children }: Content) => (
  <>
    {icon && <Icon name={icon} />}
    {children}
  </>
)

/** The button that sends a form. `name` and `value` tell several buttons of one form apart. */
export function Button({ name, value, ...props }: Content & { name?: string; value?: string }) {
  return (
    <button type="submit" class={`button ${props.look ?? 'plain'}`} name={name} value={value}>
      {inside(props)}
    </button>
  )
}

/** A link that looks like a button: it opens a page, and changes nothing. */
export function LinkButton({ href, ...props }: Content & { href: string }) {
  return (
    <a class={`button ${props.look ?? 'plain'}`} href={href}>
      {inside(props)}
    </a>
  )
}

/** A button that is a form of its own. */
export function ActionButton(
  props: Content & { action: string; fields?: Record<string, string>; name?: string; value?: string },
) {
  const { action, fields = {}, name, value, ...content } = props
  return (
    <PostForm action={action} class="inline">
      {Object.entries(fields).map(([field, text]) => (
        <input type="hidden" name={field} value={text} key={field} />
      ))}
      <Button {...content} {...(name !== undefined && { name })} {...(value !== undefined && { value })} />
    </PostForm>
  )
}

/** A destructive action behind a question, which says what is lost. Works without JavaScript. */
export function ConfirmButton(
  props: Content & {
    action: string
    question: ComponentChildren
    confirm: string
    fields?: Record<string, string>
  },
) {
  const { action, question, confirm, fields = {}, ...content } = props
  return (
    <details class="confirm">
      <summary class={`button ${content.look ?? 'plain'}`}>{inside(content)}</summary>
      <div class="popover">
        <p>{question}</p>
        <ActionButton action={action} look="danger" fields={fields}>
          {confirm}
        </ActionButton>
      </div>
    </details>
  )
}
