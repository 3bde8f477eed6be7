/** Parts of pages of the console, put in place of those that are shown. */

let policy: { createHTML(html: string): unknown } | undefined

/** A page of this console as a document, in which nothing runs. */
export function parsed(html: string): Document {
  policy ??= globalThis.trustedTypes?.createPolicy('agx', { createHTML: (text) => text })
  return new DOMParser().parseFromString((policy?.createHTML(html) ?? html) as string, 'text/html')
}

/** Shows the newest content of this page. @returns it; undefined if the page could not be read. */
export async function renewMain(): Promise<Element | undefined> {
  const answer = await fetch(location.href).catch(() => undefined)
  // The session has ended: what is shown stays.
  if (!answer?.ok || answer.redirected) return undefined
  return replaceMain(parsed(await answer.text()))
}

/** Shows the content of another document; opened parts stay open. */
export function replaceMain(next: Document): Element | undefined {
  const fresh = next.querySelector('main')
  if (!fresh) return undefined
  const open = new Set([...document.querySelectorAll('main details[open][id]')].map(({ id }) => id))
  for (const one of fresh.querySelectorAll('details[id]')) if (open.has(one.id)) one.setAttribute('open', '')
  document.querySelector('main')!.replaceWith(fresh)
  return fresh
}

/** Sends a form as the browser would. @returns the page that answers; undefined if there is none. */
export async function send(
  form: HTMLFormElement,
  extra: Record<string, string>,
  signal?: AbortSignal,
): Promise<{ page: Document; answer: Response } | undefined> {
  const fields = [...new FormData(form)].flatMap(([name, value]): [string, string][] =>
    typeof value === 'string' ? [[name, value]] : [],
  )
  const body = new URLSearchParams([...fields, ...Object.entries(extra)])
  const answer = await fetch(form.action, { method: 'POST', body, ...(signal && { signal }) }).catch(
    () => undefined,
  )
  return answer && { page: parsed(await answer.text()), answer }
}

declare global {
  var trustedTypes:
    | {
        createPolicy(
          name: string,
          rules: { createHTML(html: string): string },
        ): { createHTML(html: string): unknown }
      }
    | undefined
}
