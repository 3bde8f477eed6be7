import { UUID } from '../../workflows/shared/uuid.ts'

/**
 * Replaces values that differ between runs of a test: ids, times, secrets, addresses and durations. Equal ids stay equal:
 * ids are numbered in the order in which they occur.
 */
export function createNormalizer() {
  const ids = new Map<string, string>()
  const idOf = (id: string) => {
    if (!ids.has(id))
      ids.set(id, `01890a5d-ac96-774b-bcce-b302099a8${(0x057 + ids.size).toString(16).padStart(3, '0')}`)
    return ids.get(id)!
  }
  const text = (value: string) =>
    value
      .replace(/[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g, idOf)
      .replace(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z/g, '2026-01-31T09:30:00.000Z')
      .replace(/"duration_ms":\d+/g, '"duration_ms":12')
      .replace(/\(\d+ ms\)$/, '(4 ms)')
      // The version of the authoring guide, which changes with each node type.
      .replace(/^[0-9a-f]{12}$/, '5f1d7ad0c2b1')
      .replace(/\[masked:[0-9a-v]{12}\]/g, '[masked:68f30p9og2lu]')
      .replace(/agx_[A-Za-z0-9]{46}/, 'agx_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx')
      .replace(/^agx_\w{1,12}$/, 'agx_xxxxxx')
      .replace(/agxc_[\w-]{43}/, 'agxc_xxxxxx')
      .replace(/iss=http%3A%2F%2F127\.0\.0\.1%3A\d+/, 'iss=https%3A%2F%2Fagx.example.com')
      .replace(/whsec_[A-Za-z0-9+/=]+/, 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw')
      .replace(
        /^(http:\/\/localhost:\d+\/app\/(?:invitations|password-resets)\/)[\w-]{43}/,
        '$1Lr5cNn0bY2QpXo7mTq9sVw4eHk8uJd1fGz6aBi3xRtE',
      )
      .replace(/^http:\/\/127\.0\.0\.1:\d+\/webhooks/, 'https://agx.example.com/webhooks')
      .replace(/^http:\/\/127\.0\.0\.1:\d+\//, 'https://example.com/hooks')
      .replace(/^Test$/, 'Acme Inc')
      .replace(/^test$/, 'Demo key')
      .replace(/^127\.0\.0\.1$/, '192.0.2.10')
      .replace(/^127\.0\.0\.1:\d+$/, 'agx.example.com')

  return function normalize(value: unknown, name = ''): unknown {
    if (typeof value === 'string') return MEMBERS[name] ?? text(value)
    if (typeof value === 'number') return MEMBERS[name] ?? value
    if (Array.isArray(value)) return value.map((item) => normalize(item))
    if (typeof value !== 'object' || value === null) return value
    return Object.fromEntries(
      Object.entries(value).map(([key, member]) => [
        UUID.test(key) ? idOf(key) : key,
        normalize(member, key),
      ]),
    )
  }
}

/** Members of which every non-null value differs. */
const MEMBERS: Record<string, string | number> = {
  duration_ms: 12,
  response_time_ms: 4.2,
  csrf_token: 'yZ1xk3vJc0m8n2Qp',
  token: 'Lr5cNn0bY2QpXo7mTq9sVw4eHk8uJd1fGz6aBi3xRtE',
  trace_id: '4bf92f3577b34da6a3ce929d0e0e4736',
  next_cursor: 'eyJzIjoiMDE4OTBhNWQifQ',
  local: '2026-01-31T18:30:00+09:00',
  date: 'Sat, 31 Jan 2026 09:30:00 GMT',
}
