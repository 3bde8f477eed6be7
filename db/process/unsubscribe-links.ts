import { open, type SecretsKey, seal } from './seal.ts'

/** Whose mails nobody wants at which address. */
export interface Unsubscription {
  organization_id: string
  address: string
}

const OWNER = 'unsubscribe'

/** The link that ends the mails of an organization to an address, which it does not show. */
export const unsubscribeLink = (
  key: SecretsKey,
  publicUrl: string,
  { organization_id, address }: Unsubscription,
): string =>
  `${publicUrl.replace(/\/$/, '')}/mails/unsubscribe/${seal(key, `${organization_id} ${address}`, OWNER)}`

/** Undefined for a token that the service did not issue. */
export function readUnsubscribeToken(key: SecretsKey, token: string): Unsubscription | undefined {
  try {
    const [organization_id = '', address = ''] = open(key, token, OWNER).split(' ')
    return { organization_id, address }
  } catch {
    return undefined
  }
}
