import { replaceMain, send } from './swap.ts'

/** Cards move between the columns of a board by a drag: it presses what the buttons of a card press. */
export function startBoard(): void {
  if (!document.querySelector('[data-board]')) return
  let dragged: HTMLElement | undefined
  const columnAt = (target: EventTarget | null) =>
    target instanceof Element ? target.closest<HTMLElement>('[data-stage]') : null

  document.addEventListener('dragstart', (event) => {
    dragged = (event.target as Element).closest<HTMLElement>('[data-deal]') ?? undefined
    if (!dragged) return
    dragged.classList.add('dragged')
    event.dataTransfer!.effectAllowed = 'move'
    event.dataTransfer!.setData('text/plain', dragged.dataset.deal!)
  })
  document.addEventListener('dragover', (event) => {
    const column = columnAt(event.target)
    mark(column)
    if (dragged && column) event.preventDefault()
  })
  document.addEventListener('dragend', () => {
    dragged?.classList.remove('dragged')
    dragged = undefined
    mark(null)
  })
  document.addEventListener('drop', async (event) => {
    const column = columnAt(event.target)
    const form = document.querySelector<HTMLFormElement>('#move')
    if (!dragged || !column || !form) return
    event.preventDefault()
    const card = dragged
    if (card.closest('[data-stage]') === column) return
    column.querySelector('ul')!.prepend(card)
    const reply = await send(form, { move: `${card.dataset.deal} ${column.dataset.stage}` })
    if (!reply || !replaceMain(reply.page)) location.reload()
  })
}

function mark(over: Element | null) {
  for (const column of document.querySelectorAll('[data-stage]'))
    column.classList.toggle('over', column === over)
}
