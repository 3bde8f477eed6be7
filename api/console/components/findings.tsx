import { Icon } from './icon.tsx'
import { Scrollable } from './scrollable.tsx'

export interface Finding {
  code: string
  message: string
  path: string
  line?: number
  hint?: string
}

export interface Validation {
  valid: boolean
  errors: Finding[]
  warnings: Finding[]
}

/** The lines of a YAML, each with its findings below it. */
export function Lines({
  text,
  findings = [],
}: {
  text: string
  findings?: (Finding & { isError: boolean })[]
}) {
  return (
    <Scrollable class="lines" label="The YAML">
      <ol>
        {text
          .replace(/\n$/, '')
          .split('\n')
          .map((line, i) => {
            const here = findings.filter((finding) => finding.line === i + 1)
            const look = here.some(({ isError }) => isError)
              ? 'finding'
              : here.length > 0
                ? 'finding amber'
                : undefined
            return (
              <li key={i} class={look} id={`line-${i + 1}`}>
                {line}
                {here.map(({ message, hint, code }) => (
                  <span class="message" key={`${code} ${message}`}>
                    {message}
                    {hint && `: ${hint}`} <code>{code}</code>
                  </span>
                ))}
              </li>
            )
          })}
      </ol>
    </Scrollable>
  )
}

/** What a validation found, as a list with the lines, and in the text itself. */
export function Findings({ text, validation }: { text: string; validation: Validation }) {
  const { errors, warnings } = validation
  const all = [
    ...errors.map((finding) => ({ ...finding, isError: true })),
    ...warnings.map((finding) => ({ ...finding, isError: false })),
  ]
  if (all.length === 0)
    return (
      <p class="notice green" role="status">
        <Icon name="circle-check" /> No error and no warning.
      </p>
    )
  return (
    <>
      <div class={errors.length > 0 ? 'notice red' : 'notice amber'} role="alert" tabIndex={-1} data-focus>
        <p>
          {errors.length} errors, {warnings.length} warnings:
        </p>
        <ul>
          {all.map(({ line, message, hint, path }) => (
            <li key={`${path} ${message}`}>
              {line ? <a href={`#line-${line}`}>Line {line}</a> : <code>{path}</code>}: {message}
              {hint && `: ${hint}`}
            </li>
          ))}
        </ul>
      </div>
      <Lines text={text} findings={all} />
    </>
  )
}
