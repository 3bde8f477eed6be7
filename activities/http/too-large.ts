import { NodeError } from '../../workflows/language/node-error.ts'

const MEBIBYTE = 1024 * 1024

/** @param when the size was measured, to end the sentence; default: as received. */
export const tooLarge = (maxBytes: number, when = '') =>
  new NodeError('response_too_large', `the response is larger than ${sizeText(maxBytes)} ${when}`.trimEnd())

export const sizeText = (bytes: number) =>
  bytes % MEBIBYTE === 0 ? `${bytes / MEBIBYTE} MiB` : `${bytes} bytes`
