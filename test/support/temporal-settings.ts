/** Temporal suggests to continue as new from 4,096 events, which take a test half a minute. */
export const SUGGESTED_EVENTS = 400

export const TEST_DYNAMIC_CONFIG = {
  'limit.historyCount.suggestContinueAsNew': SUGGESTED_EVENTS,
  /** The default of Temporal, which other servers have: the development server of `npm start` allows more. */
  'history.maximumBufferedEventsBatch': 100,
}
