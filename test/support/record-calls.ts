import assert from 'node:assert/strict'
import { importsOf } from './imports.ts'
import { until } from './until.ts'
import type { ApiSuite } from './with-api.ts'

/** Calls of /v1 in tests of files and workflows of records, with the API of a suite. */
export function recordCalls(on: Pick<ApiSuite, 'api'>) {
  /** @returns the body of the answer, which must be a success. */
  const call = async (method: string, path: string, body?: object) => {
    const answer = await on.api.request(method, `/v1${path}`, body === undefined ? {} : { body })
    assert.ok(answer.status < 300, `${path}: ${JSON.stringify(answer.body)}`)
    return answer.body
  }
  /** The run, export or job of the path, once it has ended. */
  const ended = (path: string) =>
    until(async () => {
      const body = await call('GET', path)
      return body.ended_at ? body : undefined
    }, path)
  return {
    call,
    ended,
    /** Imports a file. @returns the import, and the file of the rows that failed, if any. */
    async imported(values: object, file: string) {
      const imports = importsOf(on.api)
      const { body: prepared } = await imports.prepare(values, file)
      const started = await imports.start(prepared.id)
      assert.equal(started.status, 200, JSON.stringify(started.body))
      const done = await imports.ended(prepared.id, 60)
      return { done, errors: done.progress.failed > 0 ? await imports.errors(prepared.id) : '' }
    },
    /** The file of an export of all records of the kind. */
    async exported(entity: string): Promise<string> {
      const { id } = await call('POST', '/exports', { entity })
      await ended(`/exports/${id}`)
      return (await on.api.request('GET', `/v1/exports/${id}/file`)).body
    },
  }
}
