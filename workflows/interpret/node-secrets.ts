import { SECRETS_ROOT, secretsRead } from '../language/expressions/secrets.ts'
import { NodeError } from '../language/node-error.ts'
import { SECRETS } from '../shared/limits.ts'
import { nearest } from '../shared/nearest.ts'
import { Redactor } from '../shared/redactor.ts'

/** The secrets of the organization by name; undefined for a secret that cannot be decrypted. */
export type OpenedSecrets = ReadonlyMap<string, string | undefined>

/** The secrets of one attempt of a node that calls other services. */
export class NodeSecrets {
  /** Masks the secrets that the node reads, and the distinctive ones of the organization. */
  readonly redactor: Redactor
  private readonly all: OpenedSecrets

  constructor(all: OpenedSecrets) {
    this.all = all
    const values = [...all.values()].filter((value) => value !== undefined)
    this.redactor = new Redactor(values.filter((value) => value.length >= SECRETS.distinctive))
  }

  /** Masks texts that are no secrets of the organization, such as those that an author marked. */
  hide(texts: readonly string[]): void {
    for (const text of texts) this.redactor.add(text, { parts: true })
  }

  /**
   * The secrets that a config reads, by name. Throws NodeError `unknown_secret` for one that does not exist, unless it
   * has a default; `secret_not_opened`; `placeholder_error` for a computed name.
   */
  readBy(config: unknown): Record<string, string> {
    const found: [string, string][] = []
    for (const [name, { optional }] of secretsRead(config)) {
      const value = this.all.get(name)
      if (value !== undefined) {
        found.push([name, value])
        this.redactor.add(value, { parts: true })
      } else if (this.all.has(name)) throw notOpened(name)
      else if (!optional) throw unknown(name, [...this.all.keys()])
    }
    return Object.fromEntries(found)
  }
}

function unknown(name: string, names: readonly string[]): NodeError {
  const meant = nearest(name, names)
  const hint = meant === undefined ? 'it was deleted, or never set.' : `did you mean ${meant}?`
  return new NodeError('unknown_secret', `There is no secret ${shown(name)}: ${hint}`)
}

/** Retryable: another worker may have the right key, or this one after a restart. */
const notOpened = (name: string) =>
  new NodeError(
    'secret_not_opened',
    `The secret ${shown(name)} cannot be opened: it was set with another SECRETS_KEY than the worker has. Set it again.`,
    { retryable: true },
  )

const shown = (name: string) => name.slice(0, 100)

/** For nodes that cannot read secrets. Throws NodeError `secrets_not_available` if the config reads one. */
export function refuseSecrets(config: unknown): void {
  if (secretsRead(config).size > 0)
    throw new NodeError(
      'secrets_not_available',
      `${SECRETS_ROOT} are available only in nodes that call other services.`,
    )
}
