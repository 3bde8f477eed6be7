import { MEMBER_ROLES, ROLE_SCOPES } from '../../db/model/access/roles.ts'
import { SCOPES } from '../../db/model/access/scopes.ts'
import type { AppRoute, Role } from './route.ts'

const ROLES: Role[] = ['public', ...MEMBER_ROLES.toReversed()]

/** A section of the document's description: the permissions of each role in /app. */
export const rolesSection = (routes: readonly AppRoute[]): string => `## Roles

Operations under \`/app\` need a role. A role may also do what stands in the columns left of it; \`public\` needs no session. Owners may do all that admins may, and only they give and take the role \`owner\`, remove owners and reset their passwords.

${roleTable(routes)}

## Sessions instead of keys

Every operation of \`/v1\` is also served to a session, under \`/app/v1\`: \`GET /app/v1/objects/contacts\`. It takes the session cookie instead of a key (a key gives 401), writes also the \`X-CSRF-Token\`, and acts in the organization of the session. The role has scopes: ${scopesOfRoles()}. Requests count against the user's limit of 600 per minute and the one of the organization. Paths in responses, such as \`links.self\`, are those of \`/v1\`.`

/** The scopes of each role: `owner` and `admin` all; … */
function scopesOfRoles(): string {
  const roles = MEMBER_ROLES.map((role) => {
    const lacked = SCOPES.filter((scope) => !ROLE_SCOPES[role].has(scope)).map((scope) => `\`${scope}\``)
    return `\`${role}\` ${lacked.length === 0 ? 'all' : `all but ${lacked.join(', ')}`}`
  })
  return roles.join(', ')
}

function roleTable(routes: readonly AppRoute[]): string {
  const roles = ROLES.filter((role) => routes.some((route) => route.role === role))
  const cell = (tag: string, role: Role) =>
    routes
      .filter((route) => route.tag === tag && route.role === role)
      .map(({ summary }) => summary)
      .join(' · ')
  const tags = [...new Set(routes.map(({ tag }) => tag))]
  const lines = [
    ['', ...roles],
    ['---', ...roles.map(() => '---')],
    ...tags.map((tag) => [tag, ...roles.map((role) => cell(tag, role))]),
  ]
  return lines.map((cells) => `| ${cells.join(' | ')} |`).join('\n')
}
