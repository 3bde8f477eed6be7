import { mailsLinks } from '../../db/process/config.ts'
import type { SecretsKey } from '../../db/process/seal.ts'
import type { AppDeps } from '../deps.ts'

/**
 * The key that seals mailed links. Undefined if the service sends no mail: an admin then gets the link in the response.
 */
export const mailKeyOf = ({ config, secretsKey }: AppDeps): SecretsKey | undefined =>
  mailsLinks(config) ? secretsKey : undefined
