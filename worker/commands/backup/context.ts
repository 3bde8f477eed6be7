/** What the commands of `npm run backup` need. */
export interface BackupContext {
  /** The file of the dump. */
  file: string
  /** The URL of the owner. */
  owner: string
  /** Prints a line. */
  say(line: string): void
}
