import type { QueryVectors } from '../../db/knowledge/query-vectors.ts'
import type { Database } from '../../db/postgres/connect.ts'
import type { FileStore } from '../../db/stored-files/store.ts'
import type { HttpClient } from '../http/client.ts'
import type { Mailer } from '../mail/mailer.ts'
import type { RateSource } from '../rates/source.ts'
import type { CodeRunner } from '../sandbox/runner.ts'
import { analyticsOf } from './analytics.ts'
import { type EffectFactories, transactionOf } from './define.ts'
import { eventsOf } from './events.ts'
import { httpOf } from './http.ts'
import { keyValuesOf } from './key-values.ts'
import { knowledgeOf } from './knowledge.ts'
import { lookupsOf } from './lookups.ts'
import { type MailDeps, mailOf } from './mail.ts'
import { ratesOf } from './rates.ts'
import { recordsIn } from './records.ts'
import { responsesOf } from './responses.ts'
import { runsOf } from './runs.ts'
import { sandboxOf } from './sandbox.ts'

/** What the process provides to the effects. */
export interface EffectDeps {
  /** Calls URLs through the egress guard. */
  http: HttpClient['call']
  /** Reads records and files for nodes that call other services. */
  db?: Database | undefined
  /** Receives and reads the contents of files. */
  files?: FileStore | undefined
  /** Sends mails; undefined if the service has no SMTP server. */
  mailer?: Mailer | undefined
  unsubscribeLink?: MailDeps['unsubscribeLink']
  mailMinute?: MailDeps['mailMinute']
  /** Runs code of tenants. */
  code?: CodeRunner | undefined
  /** Makes the vectors of queries to the knowledge base. */
  queryVectors?: QueryVectors | undefined
  /** Reads exchange rates. */
  rates?: RateSource | undefined
}

/** Every effect of `workflows/effects/`, implemented. */
export const createEffects = ({
  db,
  files,
  http,
  mailer,
  code,
  rates,
  queryVectors,
  unsubscribeLink,
  mailMinute,
}: EffectDeps): EffectFactories => ({
  records: (host) => recordsIn(transactionOf(host), host.once),
  analytics: analyticsOf,
  http: (host) => httpOf(http, { db, files }, host),
  lookups: (host) => lookupsOf(db, host),
  events: eventsOf,
  mail: (host) => mailOf({ mailer, db, files, unsubscribeLink, mailMinute }, host),
  rates: (host) => ratesOf(rates, host),
  runs: runsOf,
  responses: responsesOf,
  keyValues: keyValuesOf,
  knowledge: (host) => knowledgeOf({ db, queryVectors }, host),
  sandbox: (host) => sandboxOf(code, host),
})
