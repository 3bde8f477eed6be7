import type { ComponentChildren } from 'preact'
import { Marked } from './field.tsx'
import { Icon } from './icon.tsx'
import { Scrollable } from './scrollable.tsx'

export interface Finding {
  code: string
  message: string
  path: string
  line?: number
  column?: number
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

/** The findings of a validation, errors first. */
export const findingsOf = ({ errors, warnings }: Validation) => [
  ...errors.map((finding) => ({ ...finding, isError: true })),
  ...warnings.map((finding) => ({ ...finding, isError: false })),
]

/** What a validation found, as a list with the lines. `fix`: a button that applies the hint, if that can be done. */
export function Findings({
  validation,
  fix = () => null,
}: {
  validation: Validation
  fix?: (finding: Finding) => ComponentChildren
}) {
  const { errors, warnings } = validation
  const all = findingsOf(validation)
  if (all.length === 0)
    return (
      <p class="notice green" role="status">
        <Icon name="circle-check" /> No error and no warning.
      </p>
    )
  return (
    <div class={errors.length > 0 ? 'notice red' : 'notice amber'} role="alert" tabIndex={-1} data-focus>
      <p>
        {counted(errors.length, 'error')}, {counted(warnings.length, 'warning')}:
      </p>
      <ul>
        {all.map((finding) => {
          const { line, message, hint, path, isError } = finding
          return (
            <li key={`${path} ${message}`}>
              {line ? (
                <a href={`#line-${line}`} data-line={line} data-tone={isError ? 'red' : 'amber'}>
                  Line {line}
                </a>
              ) : (
                <code>{path}</code>
              )}
              : <Marked text={hint ? `${message}: ${hint}` : message} /> {fix(finding)}
            </li>
          )
        })}
      </ul>
    </div>
  )
}

const counted = (count: number, what: string) => `${count} ${what}${count === 1 ? '' : 's'}`
