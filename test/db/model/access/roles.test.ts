import assert from 'node:assert/strict'
import { includesRole, leastRole, MEMBER_ROLES, ROLE_SCOPES } from '../../../../db/model/access/roles.ts'
import { allows, SCOPES } from '../../../../db/model/access/scopes.ts'

describe('roles', () => {
  it('give owners and admins every scope', () => {
    for (const role of ['owner', 'admin'] as const) assert.deepEqual([...ROLE_SCOPES[role]], SCOPES)
  })

  it('give members records, runs, the knowledge base and read access', () => {
    const refused = SCOPES.filter((scope) => !allows(ROLE_SCOPES.member, scope))
    assert.deepEqual(refused, ['records:backdate', 'records:reveal', 'workflows:author', 'webhooks:write'])
  })

  it('are ordered: each includes the lower ones', () => {
    for (const [index, role] of MEMBER_ROLES.entries())
      for (const below of MEMBER_ROLES.slice(index)) {
        assert.ok(includesRole(role, below))
        for (const scope of ROLE_SCOPES[below]) assert.ok(allows(ROLE_SCOPES[role], scope), scope)
      }
    assert.ok(!includesRole('member', 'admin'))
  })

  it('have a least role for each scope', () => {
    assert.deepEqual(
      [leastRole('webhooks:read'), leastRole('webhooks:write'), leastRole('workflows:author')],
      ['member', 'admin', 'admin'],
    )
  })
})
