import type { AppDeps } from '../deps.ts'

/** The public address of the service, without a final slash. */
export const baseUrl = (deps: Pick<AppDeps, 'config'>, host = `localhost:${deps.config.PORT}`): string =>
  (deps.config.PUBLIC_URL ?? `http://${host}`).replace(/\/$/, '')
