import type { Knex } from 'knex'

/** By table: the columns that hold the id of another record or of a user, and their indexes until now. */
const REFERENCES: Record<string, [column: string, index: string][]> = {
  contacts: [['company_id', 'contacts_company']],
  companies: [['parent_company_id', 'companies_parent']],
  deals: [
    ['company_id', 'deals_company'],
    ['contact_id', 'deals_contact'],
  ],
  tasks: [['assignee_id', 'tasks_assignee']],
  notes: [],
  activities: [],
}

/**
 * The first page of what belongs to a company, a contact or a user comes from the index in its order, however much
 * belongs to it; so does the page of what was changed last, which is how others keep in step. A record costs the
 * index of a reference nothing where it has none.
 */
export async function up(knex: Knex): Promise<void> {
  for (const [table, references] of Object.entries(REFERENCES)) {
    for (const [column, index] of [...references, ['owner_id', `${table}_owner`]])
      await knex.raw(`
        drop index if exists ${index};
        create index ${index} on ${table} (organization_id, ${column}, created_at desc, id desc)
          where deleted_at is null and ${column} is not null`)
    await knex.raw(
      `create index ${table}_changed on ${table} (organization_id, updated_at desc, id desc) where deleted_at is null`,
    )
  }
}

export async function down(knex: Knex): Promise<void> {
  for (const [table, references] of Object.entries(REFERENCES)) {
    for (const [column, index] of references)
      await knex.raw(`
        drop index ${index};
        create index ${index} on ${table} (organization_id, ${column}) where deleted_at is null`)
    await knex.raw(`drop index ${table}_owner; drop index ${table}_changed`)
  }
}
