import { createHash, hkdfSync, randomUUID } from 'node:crypto'
import {
  CLIENT_CAPABILITIES_META_KEY,
  type ClientCapabilities,
  createRequestStateCodec,
  type InputRequiredResult,
  inputRequired,
  inputResponse,
  type RequestStateCodec,
  type ServerContext,
} from '@modelcontextprotocol/server'
import { allKeys, type SecretsKey } from '../../db/process/seal.ts'
import type { Arguments } from './arguments.ts'

/**
 * The confirmation of an operation by a person. A client that can ask (2026-07-28, elicitation by form) gets a preview
 * with a form as `input_required`, and repeats the call with the answer; `confirm: true` alone does nothing there. Other
 * clients get the preview as result, and repeat the call with `confirm: true`.
 */

/** What the service sealed when it asked: the answer holds for this call only. */
export interface Asked {
  /** The digest of tool and arguments. */
  call: string
  /** The version that the preview showed. */
  version?: number
  /** The Idempotency-Key of the confirmed request: a repeated answer takes effect once. */
  key: string
}

const FIELD = 'confirm'

/** Seals `Asked` for the client to return. Any process with the same SECRETS_KEY opens it, for the same key only. */
export const createConfirmations = (secrets: SecretsKey): RequestStateCodec<Asked> =>
  createRequestStateCodec<Asked>({
    key: new Uint8Array(hkdfSync('sha256', allKeys(secrets)[0], '', 'agx mcp confirmation', 32)),
    bind: ({ http }) => http?.authInfo?.clientId ?? '',
  })

/** Whether the client can show a form to its user and repeat the call. */
export function canAsk({ mcpReq: { envelope } }: ServerContext): boolean {
  const declared = (envelope as Record<string, unknown> | undefined)?.[CLIENT_CAPABILITIES_META_KEY]
  const { elicitation } = (declared ?? {}) as ClientCapabilities
  // An empty object declares the form mode.
  return elicitation !== undefined && (elicitation.form !== undefined || elicitation.url === undefined)
}

/** Asks for the confirmation of a call, of which the preview is text for a person. */
export async function ask(
  ctx: ServerContext,
  codec: RequestStateCodec<Asked>,
  { call, version, preview }: { call: string; version: number | undefined; preview: string },
): Promise<InputRequiredResult> {
  const asked: Asked = { call, key: randomUUID(), ...(version !== undefined && { version }) }
  return inputRequired({
    requestState: await codec.mint(asked, ctx),
    inputRequests: {
      [FIELD]: inputRequired.elicit({
        mode: 'form',
        message: preview,
        requestedSchema: {
          type: 'object',
          properties: {
            [FIELD]: { type: 'boolean', title: 'Do it', description: 'Nothing happens without it.' },
          },
          required: [FIELD],
        },
      }),
    },
  })
}

/** The answer of a person: undefined if this call carries none. */
export function answerOf({ mcpReq }: ServerContext): 'confirmed' | 'declined' | undefined {
  const answer = inputResponse(mcpReq.inputResponses, FIELD)
  if (answer.kind !== 'elicit') return undefined
  return answer.action === 'accept' && answer.content?.[FIELD] === true ? 'confirmed' : 'declined'
}

/** The digest of a call. The order of members does not count; `confirm` is no part of what is confirmed. */
export function digestOf(tool: string, { confirm: _, ...given }: Arguments): string {
  return createHash('sha256')
    .update(JSON.stringify([tool, sorted(given)]))
    .digest('base64url')
}

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted)
  if (typeof value !== 'object' || value === null) return value
  return Object.entries(value)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, member]) => [name, sorted(member)])
}
