import { parsed } from './swap.ts'

const PAUSE_MS = 150

/** ⌘K and Ctrl-K: a dialog that shows what the page /search finds, as one types. */
export function startPalette(): void {
  if (!document.querySelector('a[href="/search"]')) return
  const dialog = document.createElement('dialog')
  dialog.className = 'palette'
  dialog.setAttribute('aria-label', 'Search')
  const input = document.createElement('input')
  input.type = 'search'
  input.placeholder = 'Records, workflows, runs, pages and actions'
  input.setAttribute('aria-label', 'Search')
  const results = document.createElement('div')
  results.setAttribute('aria-live', 'polite')
  dialog.append(input, results)
  document.body.append(dialog)

  const open = () => {
    if (dialog.open) return
    dialog.showModal()
    input.select()
    void show()
  }
  addEventListener('keydown', (event) => {
    if (event.key.toLowerCase() !== 'k' || !(event.metaKey || event.ctrlKey)) return
    event.preventDefault()
    open()
  })
  document.addEventListener('click', (event) => {
    const { target } = event
    const isPlain = !event.metaKey && !event.ctrlKey && !event.shiftKey
    if (isPlain && target instanceof Element && target.closest('a[href="/search"]')) {
      event.preventDefault()
      open()
    } else if (target === dialog) dialog.close()
  })

  let timer: ReturnType<typeof setTimeout> | undefined
  input.addEventListener('input', () => {
    clearTimeout(timer)
    timer = setTimeout(show, PAUSE_MS)
  })
  dialog.addEventListener('keydown', (event) => {
    const links = [...results.querySelectorAll<HTMLAnchorElement>('a')]
    const at = links.indexOf(document.activeElement as HTMLAnchorElement)
    if (event.key === 'ArrowDown') (links[at + 1] ?? links[0])?.focus()
    else if (event.key === 'ArrowUp') (links[at - 1] ?? input).focus()
    // In a search field Escape would only empty it.
    else if (event.key === 'Escape') dialog.close()
    else if (event.key === 'Enter' && document.activeElement === input) void openFirst()
    else return
    event.preventDefault()
  })

  /** Opens the first of what the whole text finds: it may have been typed faster than found. */
  async function openFirst() {
    clearTimeout(timer)
    if (shown !== input.value) await show()
    if (shown === input.value) results.querySelector('a')?.click()
  }

  /** The text whose results are shown. */
  let shown: string | undefined
  async function show() {
    const typed = input.value
    const answer = await fetch(`/search?${new URLSearchParams({ q: typed })}`).catch(() => undefined)
    // The session has ended: the next page says so.
    if (!answer?.ok || answer.redirected || typed !== input.value) return
    const next = parsed(await answer.text()).querySelector('.results')
    // Somebody chooses among what is shown already.
    if (results.contains(document.activeElement)) return
    results.replaceChildren(...(next ? [next] : []))
    shown = typed
  }
}
