import { findKeyHolder, type KeyHolder } from '../../db/access/keys.ts'
import type { System } from '../../db/postgres/tenancy.ts'

type Finding = Promise<KeyHolder | undefined>

/**
 * Look-ups of keys, one at a time for each key: requests that come while one is under way share the next. Each is
 * still sent after the request that asks has come, so that a revoked key is refused from that moment on.
 */
export class KeyLookups {
  private readonly sent = new Map<string, Finding>()
  private readonly waiting = new Map<string, Finding>()
  private readonly system: System

  constructor(system: System) {
    this.system = system
  }

  find(key: string): Finding {
    const waiting = this.waiting.get(key)
    if (waiting) return waiting
    const before = this.sent.get(key)
    if (!before) return this.send(key)
    const next = before.then(
      () => this.send(key),
      () => this.send(key),
    )
    this.waiting.set(key, next)
    return next
  }

  private send(key: string): Finding {
    this.waiting.delete(key)
    const finding = findKeyHolder(this.system, key)
    this.sent.set(key, finding)
    const forget = () => {
      if (this.sent.get(key) === finding) this.sent.delete(key)
    }
    finding.then(forget, forget)
    return finding
  }
}
