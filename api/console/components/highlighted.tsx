const ENTITIES: Record<string, string> = { lt: '<', gt: '>', amp: '&', quot: '"', '#39': "'" }

/**
 * A highlight of the search: escaped text with `<mark>`. It is read, not inserted: nothing else in it can become an
 * element.
 */
export function Highlighted({ html }: { html: string }) {
  return (
    <>
      {html
        .split(/<mark>(.*?)<\/mark>/s)
        .map((part, i) => (i % 2 === 1 ? <mark key={i}>{unescaped(part)}</mark> : unescaped(part)))}
    </>
  )
}

const unescaped = (text: string) =>
  text.replace(/&(lt|gt|amp|quot|#39);/g, (_, name: string) => ENTITIES[name]!)
