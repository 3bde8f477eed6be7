import { Scrollable } from './scrollable.tsx'

/** A unified diff: added and removed lines in green and red, with their signs. */
export const Diff = ({ text }: { text: string }) => (
  <Scrollable class="diff" label="The changes">
    <pre>
      {text.split('\n').map((line, i) => {
        const look = /^\+(?!\+\+)/.test(line) ? 'added' : /^-(?!--)/.test(line) ? 'removed' : undefined
        return (
          <span class={look} key={i}>
            {`${line}\n`}
          </span>
        )
      })}
    </pre>
  </Scrollable>
)
