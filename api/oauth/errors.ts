/** The codes of RFC 6749, RFC 7591 and RFC 8707 that the endpoints answer with. */
export type OAuthErrorCode =
  | 'invalid_request'
  | 'invalid_client'
  | 'invalid_grant'
  | 'invalid_scope'
  | 'invalid_target'
  | 'unsupported_grant_type'
  | 'invalid_redirect_uri'
  | 'invalid_client_metadata'
  | 'temporarily_unavailable'
  | 'server_error'

/** A refusal in the form of OAuth, which clients read instead of the envelope of /v1. */
export class OAuthError extends Error {
  readonly code: OAuthErrorCode
  readonly status: number

  constructor(code: OAuthErrorCode, message: string, status = 400) {
    super(message)
    this.code = code
    this.status = status
  }
}
