/**
 * Makes of a statement that answers many questions at once a function that asks one: questions that come in the same
 * turn, or while a statement is under way, share the next. `read` is given each question once and answers by its
 * key; a question without an answer gets undefined. Where it fails, all who shared it are told.
 */
export function coalesce<Question, Answer>(
  keyOf: (question: Question) => string,
  read: (questions: Question[]) => Promise<Map<string, Answer>>,
): (question: Question) => Promise<Answer | undefined> {
  let waiting = new Map<string, Question>()
  let next: Promise<Map<string, Answer>> | undefined
  let before: Promise<unknown> = Promise.resolve()

  const send = async () => {
    // Those who come in the same turn are let in, and those who come while another statement is under way.
    await before.catch(() => {})
    const questions = waiting
    waiting = new Map()
    next = undefined
    return read([...questions.values()])
  }
  return async (question) => {
    waiting.set(keyOf(question), question)
    if (!next) {
      next = send()
      before = next
    }
    return (await next).get(keyOf(question))
  }
}
