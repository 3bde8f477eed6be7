/** Its package has no types. */
declare module 'hoodiecrow-imap' {
  interface Folder {
    uidvalidity: number
    uidnext: number
    messages: { uid: number; flags: string[] }[]
  }
  export default function hoodiecrow(options: {
    users: Record<string, { password: string }>
    storage: Record<string, { messages: { raw: string }[] }>
  }): {
    server: import('node:net').Server
    fetchHandlers: Record<
      string,
      (connection: unknown, message: { raw: string }, query: { partial: number[] }) => object
    >
    listen(port: number, host: string, callback: () => void): void
    getMailbox(path: string): Folder
    appendMessage(folder: Folder, flags: string[], internaldate: Date, raw: string): void
  }
}
