import { mailsLinks } from '../../db/process/config.ts'
import type { SecretsKey } from '../../db/process/seal.ts'
import type { AppDeps } from '../deps.ts'

/** Seals the links that the service mails. Undefined if it mails none: an admin gets the link instead. */
export const mailKeyOf = ({ config, secretsKey }: AppDeps): SecretsKey | undefined =>
  mailsLinks(config) ? secretsKey : undefined
