/** How long a page must have been in front before its button works. */
const SEEN_MS = 1_000

/**
 * A button that gives access works a second after its page came to the front: a site that opens the page under the mouse
 * in the middle of a double click gets nothing.
 */
export function startSeen(): void {
  for (const button of document.querySelectorAll<HTMLButtonElement>('[data-when-seen]')) enable(button)
}

function enable(button: HTMLButtonElement): void {
  let timer: ReturnType<typeof setTimeout> | undefined
  const begin = () => {
    clearTimeout(timer)
    button.disabled = true
    if (document.hidden || !document.hasFocus()) return
    timer = setTimeout(() => {
      button.disabled = false
    }, SEEN_MS)
  }
  for (const event of ['focus', 'blur', 'pageshow']) addEventListener(event, begin)
  document.addEventListener('visibilitychange', begin)
  begin()
}
