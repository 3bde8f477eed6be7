import type pg from 'pg'

/** Ages of the rows: a row in each of the last 120 days, so that retentions of 30 and 90 days divide them. */
const AGE = 'now() - make_interval(secs => 120 * 86400 * (i::double precision / :rows))'

/** SQL: a UUIDv7 of the time of row `i`, unique by `i`. */
const ID = `(lpad(to_hex(floor(extract(epoch from ${AGE}) * 1000)::bigint), 12, '0') || '7000' || '8' ||
  lpad(to_hex(i), 15, '0'))::uuid`

/** SQL: an element of an array, by turns. */
const ONE_OF = (array: string) => `(${array})[1 + i % array_length(${array}, 1)]`

/** The tables that it fills. */
export const VOLUME_TABLES = [
  'events',
  'deliveries',
  'delivery_attempts',
  'runs',
  'run_nodes',
  'run_segments',
  'incoming_logs',
  'incoming_deliveries',
  'incoming_sources',
  'idempotency_keys',
  'limit_windows',
  'limit_months',
  'sessions',
  'run_waits',
  'run_signals',
  'run_effects',
  'run_loops',
  'run_iterations',
  'approval_mails',
  'run_batch_items',
  'schedule_fires',
  'audit_log',
  'key_values',
  'contacts',
  'record_history',
  'associations',
  'merged_records',
  'alternate_keys',
  'custom_field_values',
  'import_pieces',
]

/**
 * Fills the growing tables of two organizations with `rows` rows each, of all ages and statuses: one of 100 runs and
 * deliveries is queued, and one of 50 in progress. As the owner of the tables. @returns the organizations.
 */
export async function fillVolume(client: pg.Client, rows: number): Promise<string[]> {
  const run = (sql: string) => client.query(sql.replaceAll(':rows', String(rows)))
  await client.query('set session_replication_role = replica')
  await run(`
    create table volume_ids as select array(select gen_random_uuid() from generate_series(1, 2)) as organizations,
      array(select gen_random_uuid() from generate_series(1, 20)) as parents;
    insert into organizations (id, name, plan, limits)
      select o, 'Volume', 'enterprise', '{"max_running": 1000000}' from volume_ids, unnest(organizations) o;
    insert into users select p, p || '@a.example', 'U', 'none' from volume_ids, unnest(parents) p;
    insert into workflows (organization_id, id, name)
      select o, p, 'W' from volume_ids, unnest(organizations) o, unnest(parents) p;
    insert into workflow_versions (organization_id, workflow_id, version, definition, program, created_by)
      select organization_id, id, 1, '{}', '{}', '{}' from workflows;
    insert into outgoing_webhooks (organization_id, id, name, url, events, secret_sealed)
      select organization_id, id, 'W', 'https://a.example', '{*}', 'x' from workflows;
    insert into incoming_webhooks (organization_id, id, name, secret_sealed, verification, rate_limit, target_entity,
      field_mapping, deduplication)
      select (organizations)[1], p, 'W', 'x', '{}', 1, 'contacts', '{}', '{}' from volume_ids, unnest(parents) p;
  `)
  const fill = (table: string, columns: string, values: string) =>
    run(`insert into ${table} (organization_id, ${columns})
         select ${ONE_OF('organizations')}, ${values} from volume_ids, generate_series(1, :rows) i`)
  const parent = ONE_OF('parents')
  const ended = `case when i % 100 not in (1, 2, 3) then ${AGE} end`
  const statusOf = (open: string, end: string) =>
    `case when i % 100 = 1 then 'queued' when i % 100 in (2, 3) then '${open}' else '${end}' end`
  await fill(
    'events',
    'id, name, data, actor, created_at, matched_at',
    `${ID}, 'a.b', '{"a": 1}', '{}', ${AGE}, case when i % 1000 <> 5 then ${AGE} end`,
  )
  await fill(
    'deliveries',
    'id, webhook_id, event_id, status, created_at, started_at, ended_at',
    `${ID}, ${parent}, ${ID}, ${statusOf('delivering', 'succeeded')}, ${AGE}, ${AGE}, ${ended}`,
  )
  await run(`insert into delivery_attempts (organization_id, delivery_id, attempt, status)
    select organization_id, id, 1, 'succeeded' from deliveries`)
  await fill(
    'runs',
    `id, kind, workflow_id, workflow_version, workflow_name, status, trigger, inputs, created_at, updated_at, ended_at`,
    `${ID}, case when i % 20 = 7 then 'node_test' else 'run' end, case when i % 20 <> 7 then ${parent} end,
     case when i % 20 <> 7 then 1 end, 'W', ${statusOf('running', 'completed')}, '{"type": "api"}', '{}', ${AGE}, ${AGE}, ${ended}`,
  )
  await run(`update runs set expected_by = created_at + interval '1 hour',
    late_at = case when random() < 0.1 then created_at + interval '1 hour' end where kind = 'run'`)
  await run(`insert into schedule_fires (organization_id, workflow_id, scheduled_at, source, status, reason, created_at, decided_at)
    select (organizations)[1], (parents)[1], to_timestamp(i * 60), 'schedule', case when i % 100 = 1 then 'waiting' else 'skipped' end,
      case when i % 100 <> 1 then 'overlap' end, ${AGE}, case when i % 100 <> 1 then ${AGE} end
    from volume_ids, generate_series(1, :rows) i`)
  await run(`
    insert into run_nodes (organization_id, run_id, node_id, node_type, title, status, segment, position, started_at)
      select organization_id, id, 'a', 'set_fields', 'A', 'completed', 0, 0, created_at from runs;
    insert into run_segments (organization_id, run_id, temporal_run_id, segment, answer)
      select organization_id, id, 'a', 0, '{}' from runs;
    insert into run_waits (organization_id, run_id, node_id, id, type, due_at, answered_at, notified_at)
      select organization_id, id, 'a', id, 'timer', created_at, ended_at, ended_at from runs;
    insert into run_signals (organization_id, run_id, id, name, actor) select organization_id, id, id, 'a', '{}' from runs;
    insert into run_effects (organization_id, run_id, path, node_id, n, object, object_id)
      select organization_id, id, '', 'a', 0, 'contact', id from runs;
    insert into run_loops (organization_id, run_id, loop, items, count, next, succeeded, failed, bytes, concurrency,
      on_item_error, open, segment) select organization_id, id, 'a', '[]', 1, 1, 1, 0, 2, 1, 'stop', false, 0 from runs;
    insert into run_iterations (organization_id, run_id, loop, index, status, segment, settled_segment, started_at)
      select organization_id, id, 'a', 0, 'completed', 0, 0, created_at from runs;
    insert into approval_mails (organization_id, id, run_id, approval_id, event, address, due_at, ended_at)
      select organization_id, id, id, id, 'approval.requested', 'a@a.example', created_at, ended_at from runs`)
  await fill(
    'run_batches',
    'id, action, filter, options, total, created_by, created_at, ended_at',
    `${ID}, 'retry', '{}', '{}', 1, '{}', ${AGE}, ${ended}`,
  )
  await run(`insert into run_batch_items (organization_id, batch_id, run_id)
    select organization_id, id, id from run_batches`)
  await fill(
    'audit_log',
    'id, action, actor_type, target_id, target_name, created_at',
    `${ID}, 'key.created', 'system', i::text, 'K', ${AGE}`,
  )
  await fill('key_values', 'key, value, expires_at', `i::text, '1', ${AGE}`)
  await run(`insert into incoming_logs (organization_id, webhook_id, id, created_at, source_ip, status, http_status,
      payload_size, response_time_ms, headers)
    select (organizations)[1], ${parent}, ${ID}, ${AGE}, '1.2.3.4', 'Success', 200, 1, 1, '{}'
    from volume_ids, generate_series(1, :rows) i`)
  await fill(
    'incoming_deliveries',
    'webhook_id, fingerprint, created_at',
    `${parent}, decode(md5(i::text), 'hex'), ${AGE}`,
  )
  await fill(
    'incoming_sources',
    'webhook_id, source_ip, failures_since, breaches_since',
    `${parent}, i::text, ${AGE}, ${AGE}`,
  )
  await fill(
    'idempotency_keys',
    'caller_id, method, path, key, request_hash, created_at',
    `${ID}, 'POST', '/', i::text, 'x', ${AGE}`,
  )
  for (const table of ['limit_windows', 'limit_months'])
    await fill(table, 'subject, window_start, used, ends_at', `i::text, ${AGE}, 1, ${AGE}`)
  await fill(
    'sessions',
    'token_hash, id, user_id, expires_at',
    `decode(md5(i::text), 'hex'), ${ID}, ${parent}, ${AGE}`,
  )
  await fill(
    'contacts',
    `id, do_not_contact, tags, custom_fields, version, created_at, updated_at, created_by, updated_by, deleted_at, search_text`,
    `${ID}, false, '{}', '{}', 1, ${AGE}, ${AGE}, '{}', '{}', case when i % 10 = 0 then ${AGE} end, 'x'`,
  )
  await fill(
    'record_history',
    'object, record_id, version, action, changes, actor, at',
    `'contact', ${ID}, 1, 'created', '{}', '{}', ${AGE}`,
  )
  await fill(
    'associations',
    'a_entity, a_id, b_entity, b_id',
    `'companies', gen_random_uuid(), 'contacts', ${ID}`,
  )
  await fill('merged_records', 'id, entity, merged_into', `gen_random_uuid(), 'contacts', ${ID}`)
  await fill('alternate_keys', 'entity, field, key, record_id', `'contacts', 'email', i::text, ${ID}`)
  await fill('custom_field_values', 'entity, name, value_key, record_id', `'contacts', 'a', i::text, ${ID}`)
  await fill('import_pieces', 'upload_id, piece, bytes, created_at', `gen_random_uuid(), 0, 'x', ${AGE}`)
  const { rows: found } = await client.query('select organizations::text[] from volume_ids')
  await client.query('drop table volume_ids; set session_replication_role = origin')
  // A statement of its own: it cannot run in a transaction.
  await client.query('vacuum analyze')
  return found[0].organizations
}
