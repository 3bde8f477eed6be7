import { SCOPES } from '../../http/scopes.ts'
import { labelOf } from '../forms/field-spec.ts'

/**
 * The scopes as a matrix of resources and levels. Levels imply each other: `write`, `author` and `run` imply `read`.
 * `offered`: only these.
 */
export function ScopeMatrix(props: { name: string; chosen: readonly string[]; offered?: readonly string[] }) {
  const { name, chosen } = props
  const offered: readonly string[] = props.offered ?? SCOPES
  const partsOf = (i: number) => [...new Set(offered.map((scope) => scope.split(':')[i]!))]
  const resources = partsOf(0)
  const levels = partsOf(1)
  return (
    <div class="table">
      <table class="matrix">
        <thead>
          <tr>
            <th scope="col">Resource</th>
            {levels.map((level) => (
              <th scope="col" key={level}>
                {labelOf(level)}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {resources.map((resource) => (
            <tr key={resource}>
              <th scope="row">{labelOf(resource)}</th>
              {levels.map((level) => (
                <td key={level}>
                  {offered.includes(`${resource}:${level}`) && cell(name, `${resource}:${level}`, chosen)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}

function cell(name: string, scope: string, chosen: readonly string[]) {
  return (
    <label class="box">
      <input type="checkbox" name={name} value={scope} checked={chosen.includes(scope)} aria-label={scope} />
      <span class="muted" aria-hidden="true">
        {scope.split(':')[1]}
      </span>
    </label>
  )
}
