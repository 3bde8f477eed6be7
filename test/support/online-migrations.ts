/**
 * Statements that a migration of a running system must not contain, because the previous version still reads and writes
 * the tables (see `db/migrations/index.ts`). The check searches for words and does not parse. A statement that is safe
 * for another reason has the comment `online: <reason>`.
 */
const REFUSED: [pattern: RegExp, why: string][] = [
  [
    /\b(drop table|drop column|drop view|drop function|drop type)\b/,
    'the version before may use it: name the migration since which nothing does, /* unused since 0011_… */',
  ],
  [/\brename\b/, 'the version before uses the old name: add a new column, and fill both'],
  [
    /\balter (column )?\S+ (set data )?type\b/,
    'rewrites the table under a lock: add a column of the new type',
  ],
  [
    /\bset not null\b/,
    'reads the table under a lock: add a check (… is not null) not valid, and validate it',
  ],
  [/\bdrop default\b/, 'the version before may rely on it'],
  [
    /\badd (column )?(if not exists )?(?!constraint\b|check\b|foreign\b|unique\b|primary\b|exclude\b)\w+ (?!.*\bdefault\b).*\bnot null\b/,
    'the version before inserts without it: give it a default, or leave null',
  ],
  [
    /\badd (column )?.*\bdefault (gen_random_uuid|clock_timestamp|random|uuid\w*|nextval)\b/,
    'a default that differs by row rewrites the table: add the column, then set the default',
  ],
  [/\badd (column )?.*\bgenerated\b/, 'rewrites the table under a lock'],
  [
    /\badd (constraint \S+ )?(unique|primary key|exclude)\b(?!.*\busing index\b)/,
    'builds an index under a lock: create it concurrently, and add the constraint using it',
  ],
  [
    /\badd (constraint \S+ )?(check|foreign key)\b(?!.*\bnot valid\b)/,
    'reads the table under a lock: add it not valid, and validate it in a statement of its own',
  ],
  [
    /\badd column .*\breferences\b/,
    'reads the table under a lock: add the foreign key not valid, and validate it in a statement of its own',
  ],
  [
    /^create (unique )?index (?!concurrently\b)/,
    'blocks writes: create it concurrently, with `export const config = { transaction: false }`',
  ],
  [/^drop index (?!concurrently\b)/, 'waits for all readers: drop it concurrently'],
  [
    /^(update|delete from|truncate|lock|cluster|vacuum full|reindex (?!.*concurrently))\b/,
    'locks many rows or the whole table: change rows in batches, by the worker',
  ],
  [
    /^create (constraint )?trigger\b/,
    'the version before does not expect it: say why it is safe, /* online: … */',
  ],
]

/**
 * The reason why each statement is unsafe while the previous version serves. Tables that the same migration creates may
 * change.
 */
export function problemsOf(sql: string, earlier: readonly string[] = []): string[] {
  const statements = split(sql)
  const created = new Set(
    statements.flatMap(({ text }) => /^create table (?:if not exists )?(\S+)/.exec(text)?.[1] ?? []),
  )
  return statements.flatMap(({ text, comments }) => {
    if (/^online: \S/.test(comments)) return []
    const table =
      /^(?:alter table (?:if exists )?(?:only )?|create (?:unique )?index (?:.*? )?on |insert into |update )([\w.]+)/.exec(
        text,
      )?.[1]
    if (table && created.has(table)) return []
    const since = /\bunused since (\S+)/.exec(comments)?.[1]
    return REFUSED.flatMap(([pattern, why]) => {
      if (!pattern.test(text) || (why.includes('unused since') && since && earlier.includes(since))) return []
      return [`${text.slice(0, 100)}: ${why}`]
    })
  })
}

/**
 * The statements in lower case, with single spaces and without string literals. Of its comments only block comments
 * remain.
 */
function split(sql: string): { text: string; comments: string }[] {
  const plain = sql
    .replace(/\$(\w*)\$[\s\S]*?\$\1\$/g, "''")
    .replace(/--.*$/gm, '')
    .replace(/'(?:[^']|'')*'/g, "''")
  return plain.split(';').flatMap((statement) => {
    const comments = [...statement.matchAll(/\/\*([\s\S]*?)\*\//g)]
      .map(([, comment]) => comment!.trim())
      .join(' ')
    const text = statement
      .replace(/\/\*[\s\S]*?\*\//g, ' ')
      .replace(/["`]/g, '')
      .replace(/\s+/g, ' ')
      .trim()
      .toLowerCase()
    return text === '' ? [] : [{ text, comments }]
  })
}
