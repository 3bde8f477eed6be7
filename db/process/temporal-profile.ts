import { type ClientConnectConfig, loadClientConnectConfig } from '@temporalio/envconfig'

/**
 * The address, TLS, API key and namespace of Temporal from the standard TEMPORAL_ variables, which override those of a
 * profile. A profile is read only if TEMPORAL_CONFIG_FILE or TEMPORAL_PROFILE is set, because the default profile of
 * the Temporal CLI may be for another system. Throws if the file or profile does not exist.
 */
export function temporalProfile(env: NodeJS.ProcessEnv = process.env): ClientConnectConfig {
  const disableFile = !env.TEMPORAL_CONFIG_FILE && !env.TEMPORAL_PROFILE
  return loadClientConnectConfig({ disableFile, overrideEnvVars: env as Record<string, string> })
}
