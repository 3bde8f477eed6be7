/**
 * What the pages do beyond HTML. Every page works without it: it copies, keeps a form from being sent twice, suggests
 * names, renews a page while its run goes on, checks a workflow as one types, moves deals, and finds by ⌘K.
 */

import { startBoard } from './board.ts'
import { startEditor } from './editor.ts'
import { startPalette } from './palette.ts'
import { startSeen } from './seen.ts'
import { renewMain } from './swap.ts'

// The buttons that need this script are shown.
document.documentElement.classList.add('script')

// Listeners on the document also serve the content that a page renews.
document.addEventListener('click', async ({ target }) => {
  const button = target instanceof Element ? target.closest<HTMLButtonElement>('[data-copy]') : null
  if (!button) return
  await navigator.clipboard.writeText(button.dataset.copy!)
  const label = button.getAttribute('aria-label')
  button.setAttribute('aria-label', 'Copied')
  button.title = 'Copied'
  setTimeout(() => {
    button.setAttribute('aria-label', label!)
    button.title = ''
  }, 2_000)
})

document.querySelector<HTMLElement>('[data-focus]')?.focus()

document.addEventListener('submit', (event) => {
  const form = event.target as HTMLFormElement
  if (event.defaultPrevented || !('once' in form.dataset)) return
  if (form.dataset.sent) event.preventDefault()
  form.dataset.sent = '1'
})

// A page from the cache of the back button can send its forms again.
addEventListener('pageshow', () => {
  for (const form of document.querySelectorAll<HTMLFormElement>('form[data-once]')) delete form.dataset.sent
})

/** Escape and a click elsewhere close the open menus. */
function closeMenu(except?: Node | null) {
  for (const open of document.querySelectorAll<HTMLDetailsElement>('.account[open], .menu[open]'))
    if (!except || !open.contains(except)) open.open = false
}
addEventListener('click', ({ target }) => closeMenu(target as Node))
addEventListener('keydown', (event) => {
  if (event.key === 'Escape') closeMenu()
  const { target } = event
  const isTyping = target instanceof HTMLElement && target.matches('input, select, textarea')
  if (event.key !== '/' || isTyping || event.ctrlKey || event.metaKey || event.altKey) return
  const search = document.querySelector<HTMLInputElement>('input[type=search]')
  if (!search) return
  event.preventDefault()
  search.focus()
})

/** Suggests the names of records, as the list of their kind finds them. */
for (const input of document.querySelectorAll<HTMLInputElement>('[data-lookup]')) {
  const list = document.createElement('datalist')
  list.id = `${input.id}-names`
  input.after(list)
  input.setAttribute('list', list.id)
  let last = ''
  input.addEventListener('input', async () => {
    const typed = input.value.trim()
    if (typed.length < 2 || typed === last) return
    last = typed
    const query = new URLSearchParams({ q: typed, limit: '8', count: 'none' })
    const answer = await fetch(`/app/v1/objects/${input.dataset.lookup}?${query}`)
    if (!answer.ok || last !== typed) return
    const { data } = (await answer.json()) as { data: Record<string, string | null>[] }
    const names = data.map((one) => one.name ?? [one.first_name, one.last_name].filter(Boolean).join(' '))
    list.replaceChildren(
      ...names.map((name) => {
        const option = document.createElement('option')
        option.value = name
        return option
      }),
    )
  })
}

/** Renews the page's content while what it shows goes on, unless somebody reads in an opened part of it. */
const live = document.querySelector<HTMLElement>('[data-live]')
if (live) follow(live.dataset.live!)

function follow(events: string) {
  const source = new EventSource(events)
  let isWaiting = false
  const renew = async () => {
    if (isWaiting) return
    isWaiting = true
    await new Promise((resolve) => setTimeout(resolve, 300))
    isWaiting = false
    if (!(await renewMain())?.querySelector('[data-live]')) source.close()
  }
  for (const name of ['message', 'run', 'node', 'end']) source.addEventListener(name, renew)
}

/** Renews a page every few seconds while it says so: what it shows has no events. */
const polled = document.querySelector<HTMLElement>('[data-poll]')
if (polled) void poll(Number(polled.dataset.poll))

async function poll(ms: number) {
  for (let goesOn = true; goesOn; ) {
    await new Promise((resolve) => setTimeout(resolve, ms))
    if (!document.hidden) goesOn = !!(await renewMain())?.querySelector('[data-poll]')
  }
}

startEditor()
startBoard()
startPalette()
startSeen()
