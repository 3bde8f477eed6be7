import type { Payload, PayloadCodec } from '@temporalio/common'
import proto from '@temporalio/proto'
import type { PayloadKeys } from '../db/process/config.ts'
import { keyId, openBytes, sealBytes } from '../db/process/seal.ts'

/** As in the samples of Temporal's SDKs, so that its UI shows a payload that was not decrypted as encrypted. */
const ENCODING = 'binary/encrypted'

/**
 * Encrypts the payloads that are sent to Temporal, and decrypts those that come back (AES-256-GCM). A payload names its
 * key: during a rotation the further keys open what they encrypted. What was stored in plain text, before there was a
 * key, stays readable.
 */
export class EncryptionCodec implements PayloadCodec {
  private readonly encrypting: Buffer | undefined
  private readonly keys: ReadonlyMap<string, Buffer>

  constructor({ encrypt, open }: PayloadKeys) {
    this.encrypting = encrypt
    this.keys = new Map([...(encrypt ? [encrypt] : []), ...open].map((key) => [keyId(key), key]))
  }

  async encode(payloads: Payload[]): Promise<Payload[]> {
    const key = this.encrypting
    return key ? payloads.map((payload) => encrypted(payload, key)) : payloads
  }

  /** Throws MissingPayloadKey. */
  async decode(payloads: Payload[]): Promise<Payload[]> {
    return payloads.map((payload) => this.decrypt(payload))
  }

  private decrypt(payload: Payload): Payload {
    const { metadata, data } = payload
    if (textOf(metadata?.encoding) !== ENCODING || !data) return payload
    const id = textOf(metadata?.['encryption-key-id'])
    const key = this.keys.get(id)
    if (!key) throw new MissingPayloadKey(id)
    return proto.temporal.api.common.v1.Payload.decode(openBytes(key, data, Buffer.from(id)))
  }
}

/** A payload was encrypted with a key that this process does not have. */
export class MissingPayloadKey extends Error {
  constructor(id: string) {
    super(`a payload was encrypted with another PAYLOAD_KEY (${id}): add it to PAYLOAD_KEYS_TO_OPEN`)
  }
}

function encrypted(payload: Payload, key: Buffer): Payload {
  const id = Buffer.from(keyId(key))
  const bytes = proto.temporal.api.common.v1.Payload.encode(payload).finish()
  return {
    metadata: { encoding: Buffer.from(ENCODING), 'encryption-key-id': id },
    data: sealBytes(key, bytes, id),
  }
}

const textOf = (bytes: Uint8Array | null | undefined): string => Buffer.from(bytes ?? []).toString()
