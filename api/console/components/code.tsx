import { Icon } from './icon.tsx'
import { Scrollable } from './scrollable.tsx'

/** A short text in the fixed font, which a click copies: an id, a URL, a secret. */
export function Copyable({ text, label }: { text: string; label: string }) {
  return (
    <span class="copyable">
      <code title={text}>{text}</code>
      <button type="button" class="icon-button" data-copy={text} aria-label={`Copy ${label}`}>
        <Icon name="copy" />
      </button>
    </span>
  )
}

/** A longer text in the fixed font. */
export function Code({ text, label }: { text: string; label: string }) {
  return (
    <div class="code">
      <button type="button" class="icon-button" data-copy={text} aria-label={`Copy ${label}`}>
        <Icon name="copy" />
      </button>
      <Scrollable class="scroll" label={label}>
        <pre>
          <code>{text}</code>
        </pre>
      </Scrollable>
    </div>
  )
}

/** A page must not become megabytes for one value. */
const MAX_SHOWN = 20_000

/** A JSON value as text. */
export function Json({ value, label }: { value: unknown; label: string }) {
  const text = typeof value === 'string' ? value : (JSON.stringify(value, null, 2) ?? '')
  const isCut = text.length > MAX_SHOWN
  return (
    <>
      <Code text={isCut ? text.slice(0, MAX_SHOWN) : text} label={label} />
      {isCut && (
        <p class="muted">
          The first {MAX_SHOWN.toLocaleString('en')} of {text.length.toLocaleString('en')} characters.
        </p>
      )}
    </>
  )
}
