import type { Database } from '../../db/postgres/connect.ts'
import { problemsIn } from '../support/logs.ts'
import type { TestStack } from '../support/stack.ts'

/** Sets limits of the demo organization that no bench reaches; they stay enforced. @returns its id. */
export async function liftLimits(db: Database): Promise<string> {
  const limits = {
    requests_per_minute: 100_000_000,
    requests_per_minute_per_key: 100_000_000,
    max_running: 10_000,
    max_queued: 10_000_000,
    max_descendants: 10_000_000,
  }
  const [row] = await db
    .system('organizations')
    .update({ limits: JSON.stringify(limits) })
    .returning<{ id: string }[]>('id')
  return row!.id
}

/** Signs in as the owner. @returns a function that posts to the settings, and returns the body of the answer. */
export async function ownerSession({
  apiUrl,
  owner,
  dataDir,
}: Pick<TestStack, 'apiUrl' | 'owner'> & Partial<Pick<TestStack, 'dataDir'>>) {
  const post = async (path: string, headers: Record<string, string>, body: object) => {
    const answer = await fetch(`${apiUrl}/app${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: JSON.stringify(body),
    })
    if (!answer.ok) {
      const said = await answer.text()
      const logged = answer.status >= 500 && dataDir !== undefined ? problemsIn(dataDir).join('\n') : ''
      throw new Error(`${path}: ${answer.status} ${said}\n${logged}`)
    }
    return answer
  }
  const session = await post('/session', {}, owner)
  const { csrf_token } = (await session.json()) as { csrf_token: string }
  const cookie = session.headers.get('set-cookie')!.split(';')[0]!
  return async <T>(path: string, body: object): Promise<T> =>
    (await post(path, { cookie, 'x-csrf-token': csrf_token }, body)).json() as Promise<T>
}
