import { insertionOf } from '../workflows/insert-node.ts'
import { parsed, send } from './swap.ts'

/** A pause in the typing after which the text is checked. */
const PAUSE_MS = 500

/**
 * The editor of a workflow: line numbers that follow the text, findings as one types, snippets at the cursor, and the
 * node of the cursor in the graph.
 */
export function startEditor(): void {
  const box = document.querySelector<HTMLElement>('[data-editor]')
  const area = box?.querySelector('textarea')
  const form = box?.closest('form')
  if (!area || !form) return
  const gutter = box!.querySelector<HTMLElement>('.gutter')!
  const saved = area.value
  let isSent = false

  numberLines(gutter, area)
  area.addEventListener('input', () => {
    numberLines(gutter, area)
    checkSoon()
  })
  area.addEventListener('keydown', (event) => onKey(event, area, form))
  form.addEventListener('submit', (event) => {
    const { value } = (event.submitter ?? {}) as HTMLButtonElement
    if (value === 'insert') {
      event.preventDefault()
      void insert(form, area)
    } else isSent = true
  })
  addEventListener('beforeunload', (event) => {
    if (!isSent && area.value !== saved) event.preventDefault()
  })
  document.addEventListener('selectionchange', () => {
    if (document.activeElement === area) markNode(nodeAt(area.value, area.selectionStart))
  })
  document.addEventListener('click', ({ target }) => {
    if (!(target instanceof Element)) return
    const link = target.closest<HTMLElement>('[data-line]')
    const node = target.closest<SVGElement>('[data-node]')
    if (link) selectLine(area, Number(link.dataset.line))
    if (node) selectLine(area, lineOf(area.value, node.dataset.node!))
  })
  markFindings(gutter)

  let timer: ReturnType<typeof setTimeout> | undefined
  let asked: AbortController | undefined
  function checkSoon() {
    clearTimeout(timer)
    asked?.abort()
    timer = setTimeout(check, PAUSE_MS)
  }

  async function check() {
    asked = new AbortController()
    const { signal } = asked
    const reply = await send(form!, { do: 'check' }, signal)
    const found = reply?.page.querySelector('#findings')
    if (!found || signal.aborted) return
    // What the fresh page focuses is for a page that was loaded.
    document.querySelector('#findings')!.replaceChildren(...found.childNodes)
    document.querySelector('.found-lines')?.remove()
    markFindings(gutter)
  }
}

function numberLines(gutter: HTMLElement, area: HTMLTextAreaElement) {
  const count = area.value.split('\n').length
  if (gutter.childElementCount === count) return
  // For browsers whose text fields do not grow with their text.
  area.rows = count + 1
  gutter.replaceChildren(
    ...Array.from({ length: count }, (_, i) => {
      const number = document.createElement('span')
      number.textContent = String(i + 1)
      return number
    }),
  )
}

/** Colours the numbers of the lines that the list of findings names. */
function markFindings(gutter: HTMLElement) {
  for (const number of gutter.children) number.className = ''
  for (const link of [...document.querySelectorAll<HTMLElement>('#findings [data-line]')].reverse()) {
    const number = gutter.children[Number(link.dataset.line) - 1]
    if (number) number.className = link.dataset.tone!
  }
}

/** Enter keeps the indentation, and adds to it below a line that ends with a colon. Save: ⌘S, check: ⌘Enter. */
function onKey(event: KeyboardEvent, area: HTMLTextAreaElement, form: HTMLFormElement) {
  const isCommand = event.metaKey || event.ctrlKey
  const button = (name: string) => form.querySelector<HTMLButtonElement>(`button[name=do][value=${name}]`)
  if (isCommand && event.key === 's') {
    event.preventDefault()
    form.requestSubmit(button('save'))
  } else if (isCommand && event.key === 'Enter') {
    event.preventDefault()
    form.requestSubmit(button('check'))
  } else if (event.key === 'Enter' && !event.shiftKey && !event.altKey && !event.isComposing) {
    const line = area.value.slice(0, area.selectionStart).split('\n').at(-1)!
    const indent = /^ *(- )?/.exec(line)![0].replace('-', ' ') + (/:\s*$/.test(line) ? '  ' : '')
    if (indent === '') return
    event.preventDefault()
    type(area, `\n${indent}`)
  }
}

/** Types as the keyboard does, so that the browser can undo it. */
function type(area: HTMLTextAreaElement, text: string) {
  area.focus()
  if (document.execCommand('insertText', false, text)) return
  area.setRangeText(text, area.selectionStart, area.selectionEnd, 'end')
  area.dispatchEvent(new InputEvent('input'))
}

/** Puts the example of a node type below the node of the cursor. */
async function insert(form: HTMLFormElement, area: HTMLTextAreaElement) {
  const field = form.querySelector<HTMLInputElement>('[name=node_type]')!
  const name = field.value.trim()
  if (name === '') return field.focus()
  const answer = await fetch(`/workflows/nodes/${encodeURIComponent(name)}`)
  const snippet = parsed(await answer.text()).querySelector<HTMLElement>('[data-snippet]')?.dataset.snippet
  form.querySelector('.insert-bar [role=status]')!.textContent =
    snippet === undefined ? `There is no node type ${name}.` : ''
  if (snippet === undefined) return
  const line = area.value.slice(0, area.selectionStart).split('\n').length - 1
  const { at, text } = insertionOf(area.value, snippet, line)
  area.setSelectionRange(at, at)
  type(area, text)
  field.value = ''
}

function selectLine(area: HTMLTextAreaElement, line: number) {
  const lines = area.value.split('\n')
  const start = lines.slice(0, line - 1).reduce((sum, one) => sum + one.length + 1, 0)
  area.focus()
  area.setSelectionRange(start, start + (lines[line - 1]?.length ?? 0))
  const height = area.scrollHeight / lines.length
  area.closest('[data-editor]')!.scrollTop = (line - 4) * height
}

const lineOf = (text: string, node: string) =>
  text.split('\n').findIndex((line) => line.startsWith(`  ${node}:`)) + 1

/** The node in whose lines a position is. */
function nodeAt(text: string, position: number): string | undefined {
  const before = text.slice(0, position).split('\n')
  const end = text.indexOf('\n', position)
  before[before.length - 1] += text.slice(position, end < 0 ? undefined : end)
  return before.reverse().flatMap((line) => /^ {2}([\w-]+):/.exec(line)?.[1] ?? [])[0]
}

function markNode(id: string | undefined) {
  for (const node of document.querySelectorAll<SVGElement>('[data-node]'))
    node.classList.toggle('current', node.dataset.node === id)
}
