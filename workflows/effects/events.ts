import { listed, type Port } from './define.ts'

/** The organization's events. */
export interface Events {
  /** Writes an event into the outbox, with the node's own row. @returns the event's id. */
  emit(name: string, data: Record<string, unknown>): Promise<string>
}

export const events: Port<Events> = {
  classes: ['write'],
  scoped: false,
  words: {
    emit: {
      call: (name, data) => [`raising the event ${name}`, ...listed('fields', Object.keys(data))].join(', '),
      result: (id, name) => `raised the event ${name}, ${id}`,
    },
  },
}
