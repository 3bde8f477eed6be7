import type { Knex } from 'knex'
import { protect } from './protect.ts'
import { searchView } from './search-view.ts'

const COUNTED =
  'owner_id, stage, pipeline, outcome, deal_type, source, currency, amount, probability, stage_changed_at'

/**
 * Pipelines of deals. An organization without a row has the one of model/records/pipelines/presets.ts; one whose deals
 * name other pipelines gets a row with them, since any text was accepted.
 */
export async function up(knex: Knex): Promise<void> {
  await knex.raw(`
    -- Row-level security is forced on the owner, too, who reads and fills them below.
    alter table deals no force row level security;
    alter table record_history no force row level security;

    -- All pipelines of an organization in one row: a write of a deal reads them by the primary key.
    create table pipelines (
      organization_id uuid primary key references organizations on delete cascade,
      -- [{"id": …, "name": …, "stages": [{"name": …, "outcome": …}]}], see db/model/records/pipelines/pipeline.ts
      definitions jsonb not null
    );

    insert into pipelines
      select organization_id, jsonb_agg(jsonb_build_object(
        'id', case when pipeline = 'default' then organization_id else gen_random_uuid() end,
        'name', pipeline, 'label', case when pipeline = 'default' then 'Default' else pipeline end,
        'is_default', pipeline = 'default', 'version', 1,
        'created_at', ${NOW}, 'updated_at', ${NOW}, 'stages', ${STAGES}
      ) order by pipeline <> 'default', pipeline)
      from (
        select organization_id, pipeline from deals where pipeline <> 'default' group by 1, 2
        union
        select distinct organization_id, 'default' from deals where pipeline <> 'default'
      ) named
      group by organization_id;

    -- The rules of custom fields, with the pipelines: null if the organization has not changed them. The lock is that of
    -- the rules.
    create function pipeline_rules(
      of_organization uuid, of_entity text, alone boolean,
      out definitions jsonb, out is_strict boolean, out pipelines jsonb
    ) language plpgsql volatile as $$
    begin
      select r.definitions, r.is_strict into definitions, is_strict
        from custom_field_rules(of_organization, of_entity, alone) r;
      select p.definitions into pipelines from pipelines p where p.organization_id = of_organization;
    end $$;

    alter table deals
      add column outcome text not null default 'open',
      add column stage_changed_at timestamptz(3) not null default now();
    /* online: there is no release before this migration */
    update deals d set
      outcome = case when closed_at is null then 'open' else stage end,
      stage_changed_at = coalesce(
        (select max(h.at) from record_history h
         where h.organization_id = d.organization_id and h.record_id = d.id and jsonb_exists(h.changes, 'stage')), created_at);
    alter table deals force row level security;
    alter table record_history force row level security;
  `)
  await protect(knex, 'pipelines')
  await searchView(knex, 'deals')
  await knex.raw(`
    /* online: there is no release before this migration */ drop index deals_recent;
    /* online: there is no release before this migration */ drop index deals_open;
    /* online: there is no release before this migration */ drop index deals_closed;
    /* online: there is no release before this migration */
    create index deals_recent on deals (organization_id, created_at desc, id desc)
      include (${COUNTED}) where deleted_at is null;
    /* online: there is no release before this migration */
    create index deals_open on deals (organization_id, created_at)
      include (${COUNTED}, closed_at) where deleted_at is null and closed_at is null;
    /* online: there is no release before this migration */
    create index deals_closed on deals (organization_id, closed_at)
      include (${COUNTED}, created_at) where deleted_at is null and closed_at is not null;
    /* online: there is no release before this migration */
    create index deals_stage_changed_at on deals (organization_id, stage_changed_at, id) where deleted_at is null;
  `)
}

const NOW = `to_char(now() at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`

/** Those that every pipeline had. */
const STAGES = `(
  select jsonb_agg(jsonb_build_object('name', name, 'label', initcap(name), 'probability', probability,
                                      'outcome', outcome, 'required_fields', '[]'::jsonb) order by position)
  from (values (1, 'lead', 10, 'open'), (2, 'qualified', 25, 'open'), (3, 'proposal', 50, 'open'),
               (4, 'negotiation', 75, 'open'), (5, 'won', 100, 'won'), (6, 'lost', 0, 'lost'))
       as s (position, name, probability, outcome))`
