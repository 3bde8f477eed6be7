import type { ComponentChildren } from 'preact'
import { useId } from 'preact/hooks'
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

/**
 * A destructive action behind a question, which says what is lost. A popover works without JavaScript, and no scrolling
 * part clips it.
 */
export function ConfirmButton(
  props: Content & {
    action: string
    question: ComponentChildren
    confirm: string
    fields?: Record<string, string>
  },
) {
  const { action, question, confirm, fields = {}, ...content } = props
  const id = useId()
  return (
    <>
      <button type="button" class={`button ${content.look ?? 'plain'}`} popovertarget={id}>
        {inside(content)}
      </button>
      <div popover="auto" id={id} class="question">
        <p>{question}</p>
        <div class="actions">
          <ActionButton action={action} look="danger" fields={fields}>
            {confirm}
          </ActionButton>
          <button type="button" class="button plain" popovertarget={id} popovertargetaction="hide">
            Cancel
          </button>
        </div>
      </div>
    </>
  )
}
