import type { HttpResponse } from '../../workflows/effects/http.ts'

/** The response of a server in the tests that replace it: status 200, without a body. */
export const httpResponse = (given: Partial<HttpResponse> = {}): HttpResponse => ({
  status: 200,
  headers: {},
  body: null,
  body_error: null,
  body_bytes: 0,
  duration_ms: 1,
  ...given,
})
