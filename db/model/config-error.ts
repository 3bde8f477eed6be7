/** Invalid settings; the message names each variable and its problem. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError'
}
