import { type FullMember, findMember, membersOf, memberWithEmail } from '../../db/access/members.ts'
import { takeTurn } from '../../db/key-values/rotations.ts'
import type { People, Person } from '../../workflows/effects/people.ts'
import { NodeError } from '../../workflows/language/node-error.ts'
import { type EffectHost, transactionOf } from './define.ts'
import { storedOnce } from './stored-once.ts'

export function peopleOf(host: EffectHost): People {
  const tx = transactionOf(host)
  const once = storedOnce(host)
  return {
    get: async (id) =>
      person(id === '' ? undefined : await findMember(tx, id), 'no user is given: the id is null'),
    find: async (email) =>
      person(await memberWithEmail(tx, email), `no member has the email address ${email}`),
    list: async (role) => (await membersOf(tx)).filter((one) => !role || one.role === role).map(shown),
    next: (rotation, among) =>
      once(['rotation', rotation, among ?? null], async () => {
        const members = await membersOf(tx)
        const candidates = among
          ? among.flatMap((one) => members.find((member) => isNamed(member, one)) ?? [])
          : members
        if (candidates.length === 0)
          throw new NodeError(
            'no_such_user',
            `Nobody in the rotation ${rotation} is a member of the organization.`,
          )
        const id = await takeTurn(tx, rotation, [...new Set(candidates.map((one) => one.id))])
        return shown(candidates.find((one) => one.id === id)!)
      }),
  }
}

const isNamed = ({ id, email }: FullMember, name: string) =>
  [id, email.toLowerCase()].includes(name.toLowerCase())

function person(found: FullMember | undefined, without: string): Person {
  if (found) return shown(found)
  throw new NodeError('no_such_user', `There is no such user in the organization: ${without}.`)
}

const shown = ({ id, name, email, role }: FullMember): Person => ({ id, name, email, role })
