import assert from 'node:assert/strict'
import { z } from 'zod'
import { catalogue } from '../../../api/v1/catalogue.ts'
import type { EffectName } from '../../../workflows/effects/index.ts'
import { dryRun } from '../../../workflows/interpret/dry-run.ts'
import { testScope } from '../../../workflows/interpret/scope.ts'
import {
  defineNode,
  type NodeContext,
  type NodeResult,
  type NodeType,
} from '../../../workflows/nodes/define.ts'
import { nodeTypes } from '../../../workflows/nodes/index.ts'

const ID = '019a0000-0000-7000-8000-000000000001'
const org = { id: ID, name: 'Test', currency: 'EUR', timezone: 'UTC' }

const facts = {
  run: { id: 'preview', workflow_id: null, workflow_name: 'Preview' },
  organization: org,
}

const callsOf = (type: NodeType, config: Record<string, unknown>, inputs: Record<string, unknown> = {}) =>
  dryRun(type, config, testScope({ inputs }, { org, env: {} }), facts)

/** A node type with the `run` under test. */
const nodeThat = <Used extends EffectName>(
  effects: Used[],
  effect: NodeType['effectClass'],
  run: (ctx: NodeContext<Used>) => Promise<NodeResult>,
) =>
  defineNode({
    type: 'test',
    engine: 1,
    category: 'data',
    title: 'Test',
    description: 'Test',
    effect,
    effects,
    config: z.looseObject({}),
    output: z.unknown(),
    handles: () => [{ name: 'success', description: 'It is done.' }],
    example: { config: {}, output: null },
    run: (_, ctx) => run(ctx),
  })

const get = (url: string) => ({ method: 'GET', url })

describe('a dry run', () => {
  it('shows what a language model may read', async () => {
    const tools = [
      { tool: 'search_records', entities: ['contacts', 'deals'] },
      { tool: 'get_record', entities: ['contacts'] },
    ]
    const lines = await callsOf(nodeTypes.ai_prompt!, { model: 'm', prompt: 'p', tools })
    assert.deepEqual(
      lines?.map((line) => line.replace(/\d+ bytes/, 'n bytes')),
      [
        'the model may call search_records of contacts, deals; get_record of contacts',
        'POST https://api.openai.com/v1/chat/completions, headers Idempotency-Key, a body of n bytes',
      ],
    )
    assert.deepEqual(nodeTypes.ai_prompt!.scopes({ tools }, catalogue).toSorted(), [
      'contacts:read',
      'deals:read',
    ])
    assert.deepEqual(nodeTypes.ai_prompt!.scopes({}, catalogue), [])
    assert.equal(
      nodeTypes.ai_prompt!.scopes({ tools: '{{ inputs.tools }}' }, catalogue).length,
      Object.keys(catalogue.entities).length,
    )
  })

  it('describes the calls of each node type, with its example', async () => {
    const { crm_manager, emit_event, api_request, run_workflow, for_each, repeat, ...more } = nodeTypes
    const {
      key_value,
      analytics_query,
      knowledge_search,
      knowledge_add,
      send_webhook,
      slack_message,
      send_email,
      ai_prompt,
      code,
      convert_currency,
      people,
      respond,
      ...others
    } = more
    const called = (type?: NodeType) => dryRun(type!, type!.example.config, scopeOf(type!), facts)
    const scopeOf = ({ example }: NodeType) => ({
      secrets: { openai_key: '[masked]' },
      ...testScope(example.inputs ?? {}, { org, env: {} }),
    })
    assert.deepEqual(await called(crm_manager), [
      'upserting a record in contacts by email, fields email first_name',
    ])
    assert.deepEqual(await called(emit_event), ['raising the event invoice.paid, fields id amount'])
    assert.deepEqual(await called(api_request), [
      'POST https://api.example.com/leads, headers Idempotency-Key, a body of 27 bytes',
    ])
    assert.deepEqual(await called(run_workflow), ['starting the workflow Welcome, inputs email'])
    assert.deepEqual(await called(for_each), ['run its body for 2 items, 2 at a time'])
    assert.deepEqual(await called(repeat), ['run its body until its condition holds, 10 times at most'])
    assert.deepEqual(await called(analytics_query), ['querying deals.won_value by owner_id'])
    assert.deepEqual(await called(key_value), ['setting the key handled:A-7 if it is absent'])
    assert.deepEqual(await called(knowledge_search), [
      'searching the collection Help center, at most 3 passages',
    ])
    assert.deepEqual(await called(people), ['taking the next turn of the rotation leads'])
    assert.deepEqual(await called(knowledge_add), [
      'adding a document to the collection Help center, 34 bytes of markdown, 1 tags, instead of the one with the external_id refunds',
    ])
    assert.match(
      String(await called(send_webhook)),
      /^POST https:\/\/erp\.example\.com\/hooks\/orders, headers .*webhook-signature, a body of \d+ bytes$/,
    )
    assert.match(String(await called(slack_message)), /^POST .*, a body of \d+ bytes$/)
    assert.deepEqual(await called(send_email), ['sending a mail to ada@example.com'])
    const [prompt] = (await called(ai_prompt)) ?? []
    assert.match(prompt ?? '', /^POST https:\/\/api\.openai\.com\/v1\/chat\/completions, headers/)
    assert.deepEqual(await called(code), ['running 1 lines of code, inputs prices'])
    assert.deepEqual(await called(convert_currency), ['reading the exchange rates'])
    assert.deepEqual(await called(respond), ['answering the sender with 200, text/plain; charset=utf-8'])
    for (const type of Object.values(others)) assert.deepEqual(await called(type), [], type.type)
  })

  it('is not made if a placeholder has no value, or the rendered config is invalid or too large', async () => {
    const { api_request } = nodeTypes
    const url = 'https://x.test/{{ inputs.id }}'
    assert.deepEqual(await callsOf(api_request!, { url }, { id: 7 }), ['GET https://x.test/7'])
    assert.equal(await callsOf(api_request!, { url }), undefined)
    assert.equal(await callsOf(api_request!, { url: 'https://x.test/{{ run.id }}' }), undefined)
    assert.equal(await callsOf(api_request!, { url: '{{ inputs.url }}' }, { url: 'nowhere' }), undefined)
    const body = Array.from({ length: 4 }, () => '{{ inputs.big }}')
    assert.equal(
      await callsOf(api_request!, { url: 'https://x.test/', body }, { big: 'x'.repeat(500_000) }),
      undefined,
    )
  })

  it('describes all calls made before the first result is needed, and none that depend on it', async () => {
    const both = nodeThat(
      ['http'],
      () => 'external',
      async ({ http }) => {
        const [{ status }] = await Promise.all([
          http.request(get('https://a.test/')),
          // Promises that need no result settle first.
          (async () => {
            for (let n = 0; n < 10; n++) await null
            return http.request(get('https://b.test/'))
          })(),
        ])
        await http.request(get(`https://c.test/${status}`))
        return { output: null }
      },
    )
    assert.deepEqual(await callsOf(both, {}), ['GET https://a.test/', 'GET https://b.test/'])
    // An error of the node itself must not look like the result of a call.
    const careful = nodeThat(
      ['http'],
      () => 'external',
      async ({ http }) => {
        await http.request(get('https://a.test/')).catch(() => http.request(get('https://fallback.test/')))
        return { output: null }
      },
    )
    assert.deepEqual(await callsOf(careful, {}), ['GET https://a.test/'])
  })

  it('describes nothing if the node fails before its first call', async () => {
    const failing = nodeThat(
      ['http'],
      () => 'external',
      async () => {
        throw new Error('no')
      },
    )
    assert.equal(await callsOf(failing, {}), undefined)
  })

  it('ends, and stays short, whatever the node does', async () => {
    const endless = nodeThat(
      ['http'],
      () => 'external',
      async ({ http }) => {
        for (let n = 0; ; n++) void http.request(get(`https://x.test/${n}`))
      },
    )
    assert.equal((await callsOf(endless, {}))?.length, 20)
    const long = nodeThat(
      ['http'],
      () => 'external',
      async ({ http }) => {
        await http.request(get(`https://x.test/${'x'.repeat(10_000)}`))
        return { output: null }
      },
    )
    assert.equal((await callsOf(long, {}))?.[0]?.length, 500)
    let aborted = false
    const slow = nodeThat(
      ['http'],
      () => 'external',
      ({ signal }) => {
        signal.addEventListener('abort', () => {
          aborted = true
        })
        return new Promise(() => {})
      },
    )
    assert.deepEqual(await callsOf(slow, {}), [])
    assert.ok(aborted)
  })

  it('gives a node no effect that its class does not allow', async () => {
    const reads = nodeThat(
      ['events'],
      () => 'read',
      async ({ events }) => {
        await events.emit('a.b', {})
        return { output: null }
      },
    )
    assert.equal(await callsOf(reads, {}), undefined)
    const undeclared = nodeThat(
      ['events'],
      () => 'write',
      // @ts-expect-error The context has the declared effects only.
      async ({ records }) => ({ output: await records.get('contacts', ID) }),
    )
    assert.equal(await callsOf(undeclared, {}), undefined)
  })

  it('redacts what looks like a secret', async () => {
    const calls = await callsOf(nodeTypes.api_request!, {
      url: 'https://ada:hunter2@x.test/agx_0123456789abcdef',
    })
    assert.deepEqual(calls, ['GET https://ada:[redacted]@x.test/agx_[redacted]'])
  })
})
