import { type Analytics, analytics } from './analytics.ts'
import type { Port } from './define.ts'
import { type Events, events } from './events.ts'
import { type Http, http } from './http.ts'
import { type KeyValues, keyValues } from './key-values.ts'
import { type Knowledge, knowledge } from './knowledge.ts'
import { type Lookups, lookups } from './lookups.ts'
import { type Mail, mail } from './mail.ts'
import { type People, people } from './people.ts'
import { type Rates, rates } from './rates.ts'
import { type Records, records } from './records.ts'
import { type Responses, responses } from './responses.ts'
import { type Runs, runs } from './runs.ts'
import { type Sandbox, sandbox } from './sandbox.ts'

/**
 * Every effect, by its name in a node type's declaration and context. To add one: its port in this folder, a line in
 * both lists below, and its implementation in `activities/effects/`, which the compiler requires.
 */
export interface Effects {
  records: Records
  analytics: Analytics
  http: Http
  lookups: Lookups
  events: Events
  mail: Mail
  rates: Rates
  runs: Runs
  responses: Responses
  keyValues: KeyValues
  knowledge: Knowledge
  people: People
  sandbox: Sandbox
}

export type EffectName = keyof Effects

export const ports: { [Name in EffectName]: Port<Effects[Name]> } = {
  records,
  analytics,
  http,
  lookups,
  events,
  mail,
  rates,
  runs,
  responses,
  sandbox,
  keyValues,
  knowledge,
  people,
}

export const effectNames = Object.keys(ports) as EffectName[]
