import type { ComponentChildren } from 'preact'
import type { KindName } from '../../../db/model/records/kind.ts'
import { kindNames } from '../../../db/model/records/kinds/index.ts'
import { ActionButton, ConfirmButton, LinkButton } from '../components/button.tsx'
import { Card, Facts } from '../components/card.tsx'
import { Copyable } from '../components/code.tsx'
import { Icon } from '../components/icon.tsx'
import { PageHeader } from '../components/page-header.tsx'
import { PostForm } from '../components/post-form.tsx'
import { Timeline, type TimelineEntry } from '../components/timeline.tsx'
import { labelOf } from '../forms/field-spec.ts'

import { namesOf, type RecordRow, type RecordSchema, schemaOf, titleOf } from '../records/record.ts'
import { resolveRecord } from '../records/references.ts'
import { type Shape, Value } from '../records/value.tsx'
import { type ConsoleRoute, type List, type Page, Refused, type View } from '../route.ts'
import { mayWrite } from './record-list.tsx'

/** The kinds whose records are listed beside a record; those of the others are in its timeline. */
const LINKED: KindName[] = ['contacts', 'companies', 'deals']
const MOST_LINKED = 10

export const recordPages: ConsoleRoute[] = kindNames.flatMap((kind): ConsoleRoute[] => {
  const path = `/records/${kind}/{entity_id}`
  const api = (view: View) => `/app/v1/objects/${kind}/${view.params.entity_id}`
  const here = (view: View) => `/records/${kind}/${view.params.entity_id}`
  return [
    {
      method: 'GET',
      path,
      async handler(view) {
        const cursor = view.query.get('cursor')
        const page = cursor ? `&cursor=${encodeURIComponent(cursor)}` : ''
        const [record, schema, timeline, ...linked] = await Promise.all([
          view.read<RecordRow>(api(view)),
          schemaOf(view, kind),
          view.read<List<TimelineEntry>>(`${api(view)}/timeline?limit=30${page}`),
          ...LINKED.map(async (target) => ({
            target,
            list: await view.readIfAllowed<List<RecordRow>>(`${api(view)}/${target}?limit=${MOST_LINKED}`),
          })),
        ])
        const references = schema.fields.flatMap(({ name, references }): [string, unknown][] =>
          references ? [[references, record[name]]] : [],
        )
        return recordPage(view, { record, schema, timeline, linked, names: await namesOf(view, references) })
      },
    },
    {
      method: 'POST',
      path: `${path}/delete`,
      async handler(view) {
        await view.change('DELETE', api(view))
        return { redirect: `/records/${kind}?done=deleted&id=${view.params.entity_id}` }
      },
    },
    {
      method: 'POST',
      path: `${path}/restore`,
      async handler(view) {
        await view.change('POST', `${api(view)}/restore`)
        return { redirect: `${here(view)}?done=restored` }
      },
    },
    {
      method: 'POST',
      path: `${path}/note`,
      async handler(view) {
        const { object } = await view.read<RecordRow>(api(view))
        await view.change('POST', '/app/v1/objects/notes', {
          body: view.form.get('body'),
          associations: [{ object, id: view.params.entity_id }],
        })
        return { redirect: `${here(view)}?done=created` }
      },
    },
    {
      method: 'POST',
      path: `${path}/link`,
      async handler(view) {
        const target = LINKED.find((one) => one === view.form.get('kind')) ?? 'contacts'
        const found = await resolveRecord(view, target, view.form.get('record'))
        if ('problem' in found)
          throw new Refused({ status: 422, body: { error: { message: found.problem } } })
        await view.change('POST', `${api(view)}/associations/${target}/${found.id}`)
        return { redirect: `${here(view)}?done=linked` }
      },
    },
    {
      method: 'POST',
      path: `${path}/unlink`,
      async handler(view) {
        const [target, id] = [view.form.get('kind'), view.form.get('id')].map(encodeURIComponent)
        await view.change('DELETE', `${api(view)}/associations/${target}/${id}`)
        return { redirect: `${here(view)}?done=unlinked` }
      },
    },
  ]
})

interface Parts {
  record: RecordRow
  schema: RecordSchema
  timeline: List<TimelineEntry>
  linked: { target: KindName; list: List<RecordRow> | undefined }[]
  names: Map<string, string>
}

/** Shown apart from the other fields. */
const META = ['id', 'version', 'created_at', 'created_by', 'updated_at', 'updated_by', 'custom_fields']

function recordPage(view: View, { record, schema, timeline, linked, names }: Parts): Page {
  const { entity } = schema
  const title = titleOf(record)
  const here = `/records/${entity}/${record.id}`
  const isEditable = mayWrite(view, entity)
  return {
    title,
    content: (
      <>
        <PageHeader
          title={<span dir="auto">{title}</span>}
          crumbs={[{ href: `/records/${entity}`, label: labelOf(entity) }]}
        >
          {isEditable && (
            <RecordActions
              here={here}
              title={title}
              singular={schema.singular}
              object={record.object}
              id={record.id}
            />
          )}
        </PageHeader>
        <div class="columns">
          <Card title="Timeline" flush>
            {isEditable && entity !== 'notes' && <NoteForm here={here} />}
            <Timeline entries={timeline} skip={record.id} />
          </Card>
          <div class="stack">
            <FieldsCard record={record} schema={schema} names={names} />
            {linked
              .filter(({ list }) => list !== undefined)
              .map(({ target, list }) => (
                <Linked
                  key={target}
                  here={here}
                  target={target}
                  list={list!}
                  isEditable={isEditable && mayWrite(view, target)}
                />
              ))}
            {isEditable && <LinkForm here={here} />}
            <MetaCard record={record} schema={schema} names={names} />
          </div>
        </div>
      </>
    ),
  }
}

type RecordProps = Pick<Parts, 'record' | 'schema' | 'names'>

/** The fields and custom fields that have a value. */
function FieldsCard({ record, schema, names }: RecordProps) {
  const known = new Map(schema.custom_fields.map((field) => [field.name, field]))
  const isSet = (value: unknown) =>
    value !== null && value !== undefined && value !== '' && !(Array.isArray(value) && value.length === 0)
  const row = (name: string, label: string, shape: Shape, value: unknown): [string, ComponentChildren] => [
    label,
    <Value value={value} shape={shape} names={names} record={record} key={name} />,
  ]
  const fields = schema.fields.filter(({ name }) => !META.includes(name) && isSet(record[name]))
  const custom = Object.entries(record.custom_fields).filter(([, value]) => isSet(value))
  return (
    <Card title="Fields">
      <Facts
        of={[
          ...fields.map((field) => row(field.name, labelOf(field.name), field, record[field.name])),
          ...custom.map(([name, value]) =>
            row(name, known.get(name)?.label ?? name, known.get(name) ?? { type: 'text' }, value),
          ),
        ]}
      />
    </Card>
  )
}

/** When the record was made and changed, and by whom. */
function MetaCard({ record, schema, names }: RecordProps) {
  return (
    <Card title="Record">
      <Facts
        of={schema.fields
          .filter(({ name }) => META.includes(name) && name !== 'custom_fields')
          .map((field) => [
            labelOf(field.name),
            field.name === 'id' ? (
              <Copyable text={record.id} label="the id" key="id" />
            ) : (
              <Value
                value={record[field.name]}
                shape={field}
                names={names}
                record={record}
                key={field.name}
              />
            ),
          ])}
      />
    </Card>
  )
}

function RecordActions(props: { here: string; title: string; singular: string; object: string; id: string }) {
  const { here, title, singular, object, id } = props
  return (
    <>
      <LinkButton href={`/records/tasks/new?for=${object}:${id}`} icon="square-check">
        New task
      </LinkButton>
      <LinkButton href={`/records/activities/new?for=${object}:${id}`} icon="activity">
        Log a call
      </LinkButton>
      <LinkButton href={`${here}/edit`} look="primary">
        Edit
      </LinkButton>
      <ConfirmButton
        action={`${here}/delete`}
        question={`Deletes the ${singular} “${title}”. It can be restored within 30 days.`}
        confirm={`Delete the ${singular}`}
        look="danger"
      >
        Delete
      </ConfirmButton>
    </>
  )
}

const NoteForm = ({ here }: { here: string }) => (
  <PostForm action={`${here}/note`} class="note-form" label="Add a note">
    <label class="hidden" for="note-body">
      Note
    </label>
    <textarea id="note-body" name="body" rows={2} required placeholder="Write a note" dir="auto" />
    <button type="submit" class="button plain">
      Add the note
    </button>
  </PostForm>
)

function Linked(props: { here: string; target: KindName; list: List<RecordRow>; isEditable: boolean }) {
  const { here, target, list, isEditable } = props
  if (list.data.length === 0) return null
  return (
    <Card
      title={labelOf(target)}
      actions={list.has_more && <span class="muted">the newest {MOST_LINKED}</span>}
      flush
    >
      <ul class="linked">
        {list.data.map((record) => (
          <li key={record.id}>
            <a href={`/records/${target}/${record.id}`} dir="auto" title={titleOf(record)}>
              {titleOf(record)}
            </a>
            {isEditable && (
              <ActionButton action={`${here}/unlink`} fields={{ kind: target, id: record.id }}>
                Unlink
              </ActionButton>
            )}
          </li>
        ))}
      </ul>
    </Card>
  )
}

const LinkForm = ({ here }: { here: string }) => (
  <details class="menu">
    <summary class="button plain">
      <Icon name="plus" /> Link a record
    </summary>
    <PostForm action={`${here}/link`} class="filters popover" label="Link a record">
      <label>
        Kind
        <select name="kind">
          {LINKED.map((kind) => (
            <option key={kind} value={kind}>
              {labelOf(kind)}
            </option>
          ))}
        </select>
      </label>
      <label>
        Name or id
        <input type="text" name="record" required autocomplete="off" />
      </label>
      <button type="submit" class="button primary">
        Link it
      </button>
    </PostForm>
  </details>
)
