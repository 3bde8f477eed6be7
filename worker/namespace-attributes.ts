import type { Client } from '@temporalio/client'
import type { SearchAttributePair } from '@temporalio/common'
import type { Logger } from '../db/process/log.ts'
import { refusal } from './relay.ts'
import { searchAttributes } from './search-attributes.ts'
import { PERMISSION_DENIED } from './temporal-server.ts'

/** The part of a client, or of a worker's connection, that is asked. */
type WorkflowService = Pick<Client['workflowService'], 'countWorkflowExecutions'>

/** Selects, of the search attributes of a call, those that the namespace has. */
export type Select = (pairs: SearchAttributePair[]) => SearchAttributePair[]

/**
 * Which of our search attributes the namespace has; until it is asked, all. Temporal refuses a start that names another,
 * and fails each workflow task that sets one. An operator creates them: see docs/deployment.md.
 */
export class NamespaceAttributes {
  private lacking: string[] = []
  /** The last refusal, which is logged once: an attribute of another type is refused with each call. */
  private refused: string | undefined
  private readonly log: Logger
  /** Search attributes are never encrypted: where payloads are, the names of workflows stay out of them. */
  private readonly hidesNames: boolean

  constructor(log: Logger, { hidesNames = false } = {}) {
    this.log = log
    this.hidesNames = hidesNames
  }

  has(name: string): boolean {
    if (this.hidesNames && name === searchAttributes.workflowName.name) return false
    return !this.lacking.includes(name)
  }

  /** Asks for each attribute, and logs which ones the namespace lacks. */
  async check(workflowService: WorkflowService, namespace: string): Promise<void> {
    const names = Object.values(searchAttributes).map(({ name }) => name)
    const found = await Promise.all(names.map((name) => isKnown(workflowService, namespace, name)))
    const lacking = names.filter((_, n) => !found[n])
    if (String(lacking) === String(this.lacking)) return
    this.lacking = lacking
    if (lacking.length === 0) this.log.info({ namespace }, 'the namespace has all search attributes')
    else
      this.log.warn(
        { namespace, lacking },
        'the namespace lacks search attributes: workflows and schedules go without them until they are created and the worker is restarted',
      )
  }

  /**
   * Makes a call to Temporal, which passes its search attributes to `select`. If one was removed since the last check,
   * asks again which ones there are, and repeats the call without any.
   */
  async apply<T>(client: Client, call: (select: Select) => Promise<T>): Promise<T> {
    try {
      return await call((pairs) => pairs.filter(({ key }) => this.has(key.name)))
    } catch (error) {
      const reason = refusal(error) ?? ''
      if (!/search attribute/i.test(reason)) throw error
      if (reason !== this.refused) this.log.warn({ reason }, 'Temporal refused a search attribute')
      this.refused = reason
      await this.check(client.workflowService, client.options.namespace).catch((err) =>
        this.log.warn({ err }, 'Temporal does not tell which search attributes the namespace has'),
      )
      return call(() => [])
    }
  }
}

async function isKnown(service: WorkflowService, namespace: string, name: string): Promise<boolean> {
  // With a workflow id that never exists, so that the server counts nothing.
  const query = `WorkflowId = 'agx-search-attributes' and ${name} is not null`
  try {
    await service.countWorkflowExecutions({ namespace, query })
    return true
  } catch (error) {
    if (refusal(error) !== undefined) return false
    // A token that may not ask: a start will tell.
    if ((error as { code?: unknown }).code === PERMISSION_DENIED) return true
    throw error
  }
}
