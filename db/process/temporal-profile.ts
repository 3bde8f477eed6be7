import { type ClientConnectConfig, loadClientConnectConfig } from '@temporalio/envconfig'

/**
 * The address, TLS, API key and namespace of Temporal by the standard TEMPORAL_ variables, over those of a profile. The
 * profile is read only if TEMPORAL_CONFIG_FILE or TEMPORAL_PROFILE is set: the default profile of the Temporal CLI, which
 * may be of another system, is not ours. Throws on a file or profile that does not exist.
 */
export function temporalProfile(env: NodeJS.ProcessEnv = process.env): ClientConnectConfig {
  const disableFile = !env.TEMPORAL_CONFIG_FILE && !env.TEMPORAL_PROFILE
  return loadClientConnectConfig({ disableFile, overrideEnvVars: env as Record<string, string> })
}
