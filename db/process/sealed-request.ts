import { open, type SecretsKey, seal } from './seal.ts'

/** A request of which the log shows masks, as its replay needs it. */
export interface SealedRequest {
  text: string
  /** The headers by which its sender is recognised. */
  headers: Record<string, string | undefined>
  /** The secret fields of the webhook when it arrived: a replay masks them, even if the webhook has others now. */
  secret_fields: string[]
}

export const ownerOfRequest = (organizationId: string): string => `incoming request of ${organizationId}`

export const sealRequest = (key: SecretsKey, organizationId: string, request: SealedRequest): string =>
  seal(key, JSON.stringify(request), ownerOfRequest(organizationId))

/** Throws if the key does not open it. */
export const openRequest = (key: SecretsKey, organizationId: string, sealed: string): SealedRequest =>
  JSON.parse(open(key, sealed, ownerOfRequest(organizationId)))
