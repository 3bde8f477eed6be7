import type { Port } from './define.ts'

/** The answer to the sender of the request that started the run. */
export interface Responses {
  /** Stores the answer with the node's own row: the first of a run counts. Throws NodeError for a second one. */
  respond(response: SenderResponse): Promise<string>
}

/** An HTTP response. */
export interface SenderResponse {
  status: number
  headers: Record<string, string>
  content_type: string
  body: string
}

export const responses: Port<Responses> = {
  classes: ['write'],
  scoped: false,
  words: {
    respond: {
      call: ({ status, content_type }) => `answering the sender with ${status}, ${content_type}`,
      result: (_, { status }) => `answered the sender with ${status}`,
    },
  },
}
