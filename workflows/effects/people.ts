import type { Port } from './define.ts'

/** A member of the organization. */
export interface Person {
  id: string
  name: string
  email: string
  role: string
}

/** The members of the organization. Throws NodeError `no_such_user`. */
export interface People {
  get(id: string): Promise<Person>
  find(email: string): Promise<Person>
  /** The oldest first. */
  list(role: string | undefined): Promise<Person[]>
  /**
   * Takes the next turn of the rotation: of the member whose last turn is longest ago. Concurrent calls take different
   * turns. `among`: ids or email addresses, of which those of no member are passed over; default: all members. After a
   * reset the same call returns the same person.
   */
  next(rotation: string, among: string[] | undefined): Promise<Person>
}

export const people: Port<People> = {
  classes: ['read', 'write'],
  scoped: true,
  words: {
    get: { call: (id) => `reading the user ${id}`, result: ({ id }) => `read the user ${id}` },
    find: { call: () => 'finding a user by email', result: ({ id }) => `found the user ${id}` },
    list: { call: () => 'listing users', result: (found) => `found ${found.length}` },
    next: {
      call: (rotation) => `taking the next turn of the rotation ${rotation}`,
      result: ({ id }, rotation) => `the turn of the rotation ${rotation} is that of ${id}`,
    },
  },
}
