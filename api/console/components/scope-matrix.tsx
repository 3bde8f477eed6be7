import { SCOPES } from '../../http/scopes.ts'
import { labelOf } from '../forms/field-spec.ts'

/** The levels that imply each other: `write`, `author` and `run` imply `read`. */
const LEVELS = [...new Set(SCOPES.map((scope) => scope.split(':')[1]!))]
const RESOURCES = [...new Set(SCOPES.map((scope) => scope.split(':')[0]!))]

/** The scopes as a matrix of resources and levels. */
export function ScopeMatrix({ name, chosen }: { name: string; chosen: readonly string[] }) {
  return (
    <div class="table">
      <table class="matrix">
        <thead>
          <tr>
            <th scope="col">Resource</th>
            {LEVELS.map((level) => (
              <th scope="col" key={level}>
                {labelOf(level)}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {RESOURCES.map((resource) => (
            <tr key={resource}>
              <th scope="row">{labelOf(resource)}</th>
              {LEVELS.map((level) => (
                <td key={level}>{cell(name, `${resource}:${level}`, chosen)}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}

function cell(name: string, scope: string, chosen: readonly string[]) {
  if (!SCOPES.some((known) => known === scope)) return null
  return (
    <label class="box">
      <input type="checkbox" name={name} value={scope} checked={chosen.includes(scope)} aria-label={scope} />
      <span class="muted" aria-hidden="true">
        {scope.split(':')[1]}
      </span>
    </label>
  )
}
