/**
 * Turns a query for many items into a function that asks for one. Calls in the same turn of the event loop, and calls
 * while a query is in flight, share the next query: every answer is read after its call. If a query fails, all calls
 * that share it fail.
 *
 * Without it, GET of one record by 32 clients with one key took 1.4 to 1.7 times the CPU of api and PostgreSQL.
 *
 * Not dataloader (2.2), which was as fast: to wait for the query in flight and to forget its answers would be functions
 * of ours there too (`batchScheduleFn`, `clearAll`), and the dependency would save six lines.
 *
 * @param keyOf identifies an item; equal items are asked for once.
 * @param read the answers by key. An item without an answer gets undefined.
 */
export function coalesce<Item, Answer>(
  keyOf: (item: Item) => string,
  read: (items: Item[]) => Promise<Map<string, Answer>>,
): (item: Item) => Promise<Answer | undefined> {
  let waiting = new Map<string, Item>()
  let next: Promise<Map<string, Answer>> | undefined
  let before: Promise<unknown> = Promise.resolve()

  const send = async () => {
    // Even without a query in flight this lets in all calls of the same turn.
    await before.catch(() => {})
    const items = waiting
    waiting = new Map()
    next = undefined
    return read([...items.values()])
  }
  return async (item) => {
    waiting.set(keyOf(item), item)
    if (!next) {
      next = send()
      before = next
    }
    return (await next).get(keyOf(item))
  }
}
