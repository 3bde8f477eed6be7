import { DefaultFailureConverter } from '@temporalio/common'

/**
 * The failure converter of workers that encrypt payloads: messages and stack traces of errors travel as a payload, which
 * the codec encrypts. The SDK loads it by its path and finds it by this name.
 */
export const failureConverter = new DefaultFailureConverter({ encodeCommonAttributes: true })
