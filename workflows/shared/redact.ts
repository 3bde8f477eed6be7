import { replaceKeys } from './credentials.ts'

/** Redacts keys of known services and passwords in URLs, for text that is logged or shown. */
export const redactText = (text: string) => replaceKeys(text, '[redacted]')
