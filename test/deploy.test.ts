import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { parse } from 'yaml'
import { MARKDOWN_PAGES, readPage } from '../api/http/docs-pages/pages.ts'
import { renderPage } from '../api/http/docs-pages/render.ts'
import { connect, type Database } from '../db/postgres/connect.ts'
import { LogOutput } from '../db/process/log-output.ts'
import { createMetrics } from '../db/process/metrics.ts'
import { readDoc } from './support/doc-pages.ts'

const FILES = ['deploy/prometheus/alerts.yaml', 'deploy/grafana/agx.json']
const RULE_TESTS = 'deploy/prometheus/alerts-test.yaml'
/** Labels that Prometheus or the histogram itself adds. */
const ADDED = ['le', 'job', 'instance']

describe('alerts and dashboard', () => {
  let db: Database
  let labels: Map<string, string[]>
  const own: string[] = []
  before(() => {
    // Nothing is read: the definitions need no connection.
    db = connect({ url: process.env.TEST_DATABASE_URL! })
    const metrics = createMetrics({
      db,
      log: new LogOutput(1),
      queues: true,
      poolBacklog: async () => 0,
      callSlots: () => ({ held: 0, waiting: 0, refused: 0 }),
    })
    own.push(...metrics.definitions().map(({ name }) => name))
    metrics.collectProcess()
    labels = new Map(
      metrics
        .definitions()
        .flatMap(({ name, type, labels }) =>
          (type === 'histogram' ? ['_bucket', '_sum', '_count'] : ['']).map(
            (end) => [name + end, labels] as const,
          ),
        ),
    )
  })
  after(() => db.close())

  const expressions = (): [where: string, expression: string][] => {
    const { groups } = parse(readDoc(FILES[0]!))
    const { panels } = JSON.parse(readDoc(FILES[1]!))
    return [
      ...groups.flatMap(({ rules }: { rules: { alert: string; expr: string }[] }) =>
        rules.map(({ alert, expr }) => [alert, expr]),
      ),
      ...panels.flatMap(({ title, targets }: { title: string; targets: { expr: string }[] }) =>
        targets.map(({ expr }) => [title, expr]),
      ),
    ]
  }

  it('name only metrics and labels that the service has', () => {
    const wrong: string[] = []
    let named = 0
    for (const [where, expression] of expressions()) {
      const found = [...expression.matchAll(/\b(?:agx|process|nodejs|temporal)_\w+/g)].map(([name]) => name)
      assert.ok(found.length > 0, where)
      named += found.length
      wrong.push(...found.filter((name) => !labels.has(name)).map((name) => `${where}: ${name}`))
      const known = [...ADDED, ...found.flatMap((name) => labels.get(name) ?? [])]
      const used = [
        ...[...expression.matchAll(/\b(?:by|on) \(([^)]+)\)/g)].flatMap(([, list]) => list!.split(/, */)),
        ...[...expression.matchAll(/\{([^}]*)\}/g)].flatMap(([, list]) =>
          [...list!.matchAll(/(\w+)[=!]/g)].map(([, name]) => name!),
        ),
      ]
      wrong.push(...used.filter((label) => !known.includes(label)).map((label) => `${where}: label ${label}`))
    }
    assert.deepEqual(wrong, [])
    assert.ok(named > 30)
  })

  it('have an alert with a severity, and a runbook that exists', async () => {
    const anchors = new Map<string, string[]>()
    for (const page of MARKDOWN_PAGES) {
      const { body } = renderPage(page, await readPage(page))
      anchors.set(
        page.path,
        [...body.matchAll(/<h\d id="([^"]+)"/g)].map(([, id]) => id!),
      )
    }
    const { groups } = parse(readDoc(FILES[0]!))
    for (const { alert, labels, annotations } of groups[0].rules) {
      assert.match(labels.severity, /^(?:page|ticket)$/, alert)
      assert.ok(annotations.summary, alert)
      const { pathname, hash } = new URL(annotations.runbook_url)
      assert.ok(anchors.get(pathname)?.includes(hash.slice(1)), `${alert}: ${pathname}${hash}`)
    }
  })

  it('each fire for series of a test of their own', () => {
    const { groups } = parse(readDoc(FILES[0]!))
    const { tests } = parse(readDoc(RULE_TESTS))
    const fired = new Set(
      tests.flatMap(({ promql_expr_test }: { promql_expr_test: { exp_samples: { labels: string }[] }[] }) =>
        promql_expr_test.flatMap(({ exp_samples }) =>
          exp_samples.map(({ labels }) => /alertname="(\w+)"/.exec(labels)?.[1]),
        ),
      ),
    )
    assert.deepEqual([...fired].sort(), groups[0].rules.map(({ alert }: { alert: string }) => alert).sort())
  })

  it('fire when they should, and only then, as Prometheus evaluates them', function () {
    if (spawnSync('promtool', ['--version']).status !== 0) {
      process.stdout.write('      skipped: promtool is not installed (apt-get install prometheus)\n')
      return this.skip()
    }
    const file = fileURLToPath(new URL(`../${RULE_TESTS}`, import.meta.url))
    const { status, stdout, stderr } = spawnSync('promtool', ['test', 'rules', file], { encoding: 'utf8' })
    assert.equal(status, 0, stdout + stderr)
  })

  it('and the page of metrics have every metric of the service', () => {
    const page = readDoc('docs/operations.md')
    const rows = new Set([...page.matchAll(/^\| `(agx_\w+)` \|/gm)].map(([, name]) => name))
    assert.deepEqual([...rows].sort(), own.sort())
  })
})
