import assert from 'node:assert/strict'
import type { Knex } from 'knex'
import { BASELINE, migrations } from '../../db/migrations/index.ts'
import { problemsOf } from '../support/online-migrations.ts'
import { releases } from '../support/releases.ts'
import { hashesOf, sentBy } from '../support/sent-migrations.ts'

describe('a migration after the baseline', () => {
  const names = migrations.map(([name]) => name)
  const later = migrations.slice(names.indexOf(BASELINE) + 1)

  it('has a number of its own, above those before; the baseline exists', () => {
    assert.ok(names.includes(BASELINE))
    const numbers = names.map((name) => Number(/^(\d{4})_(?:after_\d{4}_)?[a-z_]+$/.exec(name)?.[1]))
    assert.deepEqual(
      numbers,
      numbers.map((_, i) => i + 1),
    )
  })

  it('changes nothing that the version before uses, and takes no long lock', async () => {
    const sent = await sentBy(migrations)
    const problems = later.flatMap(([name]) =>
      problemsOf(sent.get(name)!, names.slice(0, names.indexOf(name))).map(
        (problem) => `${name}: ${problem}`,
      ),
    )
    assert.deepEqual(problems, [])
    for (const [name] of later)
      for (const [, since] of sent.get(name)!.matchAll(/unused since (\d{4})/g))
        assert.ok(name.slice(5).startsWith(`after_${since}_`), `${name}: name it …_after_${since}_…`)
  })

  it('is read as it is sent, also from builders', async () => {
    const extra = {
      async up(trx: Knex) {
        await trx.raw('create table extra (id uuid primary key); create index on extra (id)')
        await trx.schema.alterTable('key_values', (table) => table.dropColumn('expires_at'))
      },
    }
    const sent = await sentBy([...migrations, ['extra', extra]])
    assert.deepEqual(
      problemsOf(sent.get('extra')!).map((problem) => problem.split(':')[0]),
      ['alter table key_values drop column expires_at'],
    )
  })

  for (const sql of [
    'alter table contacts drop column email',
    'drop table key_values',
    '/* unused since 9999_never */ drop table key_values',
    'alter table contacts rename column email to mail',
    'alter table contacts rename to people',
    'alter table contacts alter column email type varchar(100)',
    'alter table contacts alter email set data type text',
    'alter table contacts alter column email set not null',
    'alter table runs alter column trace_id drop default',
    'alter table contacts add column size integer not null',
    'alter table contacts add size integer not null',
    'alter table contacts add column token uuid default gen_random_uuid()',
    "alter table contacts add column words tsvector generated always as (to_tsvector('simple', email)) stored",
    'alter table contacts add constraint one unique (email)',
    'alter table contacts add check (length(email) < 100)',
    'alter table contacts add constraint c foreign key (company_id) references companies (id)',
    'alter table contacts add column boss uuid references contacts (id)',
    'create index on contacts (email)',
    'CREATE  UNIQUE\n INDEX "i" ON contacts (email)',
    'drop index contacts_email',
    "update contacts set email = 'a'",
    'delete from contacts',
    'lock table contacts',
    "select 1; -- fine\n update contacts set email = 'x;y'",
    'create trigger t before insert on contacts for each row execute function f()',
  ])
    it(`must not: ${sql.replace(/\s+/g, ' ')}`, () => assert.equal(problemsOf(sql, [BASELINE]).length, 1))

  for (const sql of [
    'alter table contacts add column size integer',
    'alter table contacts add column size integer not null default 0',
    "alter table contacts add column note text not null default 'must not null drop column'",
    'create index concurrently on contacts (email)',
    'alter table contacts add constraint c check (length(email) < 100) not valid',
    'alter table contacts validate constraint c',
    'alter table contacts add constraint one unique using index contacts_email',
    'alter table contacts alter column email drop not null',
    'create table extra (id uuid primary key, size integer not null); create index on extra (size); alter table extra add check (size > 0)',
    `/* unused since ${BASELINE} */ alter table contacts drop column email`,
    '/* online: the table is empty */ update temporal_server set namespace = null',
    'create or replace function f() returns trigger as $$ begin update contacts set email = 1; end $$ language plpgsql',
  ])
    it(`may: ${sql.replace(/\s+/g, ' ')}`, () => assert.deepEqual(problemsOf(sql, [BASELINE]), []))
})

describe('a released migration', () => {
  it('is never edited, nor what it reads: it sends what it sent then', async () => {
    const now = hashesOf(await sentBy(migrations))
    for (const { version, known } of releases())
      assert.deepEqual(
        Object.fromEntries(Object.keys(known.migrations).map((name) => [name, now[name]])),
        known.migrations,
        `the migrations of ${version}`,
      )
  })
})
