import type { TestApi } from './api.ts'
import { until } from './until.ts'

/** Imports, as a client of the API makes them. */
export function importsOf(api: Pick<TestApi, 'request'>) {
  const upload = (id: string, file: string | Uint8Array, headers: Record<string, string> = {}) =>
    api.request('PUT', `/v1/imports/${id}/file`, {
      body: typeof file === 'string' ? file : Buffer.from(file),
      headers: { 'Content-Type': 'text/csv', ...headers },
    })

  return {
    upload,
    /** Creates an import with its file. @returns the answer to the upload. */
    async prepare(values: object, file: string | Uint8Array) {
      const created = await api.request('POST', '/v1/imports', { body: values })
      if (created.status !== 201) throw new Error(JSON.stringify(created.body))
      return upload(created.body.id, file)
    },
    start: (id: string, body: object = {}) => api.request('POST', `/v1/imports/${id}/start`, { body }),
    /** The import, once it has ended. */
    ended: (id: string, seconds = 20) =>
      until(
        async () => {
          const { body } = await api.request('GET', `/v1/imports/${id}`)
          return body.ended_at ? body : undefined
        },
        'the end of the import',
        seconds,
      ),
    /** Creates, uploads, starts and waits. */
    async run(values: object, file: string | Uint8Array, start: object = {}) {
      const { body, status } = await this.prepare(values, file)
      if (status !== 200) throw new Error(JSON.stringify(body))
      const started = await this.start(body.id, start)
      if (started.status !== 200) throw new Error(JSON.stringify(started.body))
      return this.ended(body.id)
    },
    errors: async (id: string): Promise<string> =>
      (await api.request('GET', `/v1/imports/${id}/errors`)).body,
  }
}
