import { errorsOf } from '../forms/errors.ts'

/** Why the API refuses the filters of a list, or an action on a page: nothing of the page is lost by it. */
export function Refusal({ of: answer }: { of: { status: number; body: Record<string, unknown> } }) {
  const { byField, others } = errorsOf(answer, [])
  return (
    <div class="notice red" role="alert" tabIndex={-1} data-focus>
      {[...others, ...[...byField.values()].flat()].map((text) => (
        <p key={text}>{text}</p>
      ))}
    </div>
  )
}
