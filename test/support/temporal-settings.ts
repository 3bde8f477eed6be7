export const TEST_DYNAMIC_CONFIG = {
  /** Temporal suggests to continue as new from 4,096 events, which take a test half a minute. */
  'limit.historyCount.suggestContinueAsNew': 1_000,
  /** The default of Temporal, which other servers have: the development server of `npm start` allows more. */
  'history.maximumBufferedEventsBatch': 100,
}
