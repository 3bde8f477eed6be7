/** Temporal suggests to continue as new from 4,096 events, which take a test half a minute. */
export const TEST_DYNAMIC_CONFIG = { 'limit.historyCount.suggestContinueAsNew': 1_000 }
