import { MEMBER_ROLES } from '../../db/access/roles.ts'
import type { AppRoute, Role } from './route.ts'

const ROLES: Role[] = ['public', ...MEMBER_ROLES.toReversed()]

/** A section of the document's description: what each role may do in /app. */
export const rolesSection = (routes: readonly AppRoute[]): string => `## Roles

Operations under \`/app\` need a role. A role may also do what stands in the columns left of it; \`public\` needs no session. Owners may do all that admins may, and only they give and take the role \`owner\`, remove owners and reset their passwords.

${roleTable(routes)}`

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
