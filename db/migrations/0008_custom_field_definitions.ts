import type { Knex } from 'knex'
import { protect } from './protect.ts'

/** What organizations say of their custom fields, and the values that are taken where a field is unique. */
export async function up(knex: Knex): Promise<void> {
  await knex.raw(`
    -- All of a kind in one row: writing a record reads them by one primary key.
    create table custom_field_definitions (
      organization_id uuid not null references organizations on delete cascade,
      entity text not null,
      -- {"name": {"type": …, "required": …, …}}
      definitions jsonb not null,
      primary key (organization_id, entity)
    );

    -- One row for each value of a unique field that a record holds; a deleted record holds none.
    create table custom_field_values (
      organization_id uuid not null references organizations on delete cascade,
      entity text not null,
      name text not null,
      -- see db/records/custom-fields/unique.ts
      value_key text not null,
      record_id uuid not null,
      primary key (organization_id, entity, name, value_key)
    );
    create index custom_field_values_record on custom_field_values (organization_id, record_id);

    -- What the custom fields of a kind must be, held still until the transaction ends: who writes records shares it,
    -- who changes definitions has it alone. In a function, for its second statement sees what was committed while the
    -- first waited.
    create function custom_field_rules(
      of_organization uuid, of_entity text, alone boolean, out definitions jsonb, out is_strict boolean
    ) language plpgsql volatile as $$
    declare
      lock bigint := hashtextextended(of_organization || ' custom fields of ' || of_entity, 0);
    begin
      if alone then
        perform pg_advisory_xact_lock(lock);
      else
        perform pg_advisory_xact_lock_shared(lock);
      end if;
      select d.definitions, coalesce(o.settings -> 'strict_custom_fields' = 'true', false)
        into definitions, is_strict
        from organizations o
        left join custom_field_definitions d on d.organization_id = o.id and d.entity = of_entity
        where o.id = of_organization;
    end $$;
  `)
  await protect(knex, 'custom_field_definitions')
  await protect(knex, 'custom_field_values')
}

export async function down(knex: Knex): Promise<void> {
  await knex.raw(`
    drop function custom_field_rules(uuid, text, boolean);
    drop table custom_field_values, custom_field_definitions;
  `)
}
