import { Button, LinkButton } from '../components/button.tsx'
import { Facts } from '../components/card.tsx'
import { PageHeader } from '../components/page-header.tsx'
import { PostForm } from '../components/post-form.tsx'
import { errorsOf } from '../forms/errors.ts'
import type { Form } from '../forms/form.ts'
import { IMPORTS, importPage } from '../imports/import.tsx'
import type { Import } from '../imports/shapes.ts'
import type { ConsoleRoute, Page, View } from '../route.ts'

/** An import: its file, the meaning of its columns, its trial, its start, its end, and its undo. */
export const importPages: ConsoleRoute[] = [
  {
    method: 'GET',
    path: '/imports/{import_id}',
    handler: async (view) => importPage(view, await importOf(view)),
  },
  {
    method: 'POST',
    path: '/imports/{import_id}/file',
    takesFile: ({ params }) => `/imports/${params.import_id}`,
    async handler(view) {
      const here = `/imports/${view.params.import_id}`
      if (!view.form.file)
        return importPage(view, await importOf(view), { problems: ['Choose a file.'], status: 422 })
      const answer = await view.upload(`/app/v1${here}/file`, 'text/csv', view.form.file)
      if (answer.status < 400) return { redirect: here }
      const { others } = errorsOf(answer, [])
      return importPage(view, await importOf(view), { problems: others, status: answer.status })
    },
  },
  {
    method: 'POST',
    path: '/imports/{import_id}/start',
    async handler(view) {
      const { form, call, params } = view
      const columns = columnsOf(form)
      const answer = await call('POST', `/app/v1/imports/${params.import_id}/start`, startOf(form, columns))
      if (answer.status < 400) return { redirect: `/imports/${params.import_id}` }
      const members = columns.flatMap((name) =>
        ['mapping', 'formats', 'values'].map((member): [string, string] => [`${member}.${name}`, name]),
      )
      const { byField, others } = errorsOf(
        answer,
        members.map(([path]) => path),
      )
      const byColumn = new Map<string, string[]>()
      for (const [path, texts] of byField) {
        const column = new Map(members).get(path)!
        byColumn.set(column, [...(byColumn.get(column) ?? []), ...texts])
      }
      const problems = [...others, ...[...byColumn].map(([name, texts]) => `${name}: ${texts.join('. ')}`)]
      return importPage(view, await importOf(view), {
        problems,
        byColumn,
        typed: form,
        status: answer.status,
      })
    },
  },
  change('stop'),
  change('resume'),
  {
    method: 'POST',
    path: '/imports/{import_id}/undo',
    async handler(view) {
      const here = `/imports/${view.params.import_id}`
      const confirm = view.form.get('do') === 'undo'
      const answer = await view.call('POST', `/app/v1${here}/undo`, { confirm })
      if (answer.status >= 400) {
        const { others } = errorsOf(answer, [])
        return importPage(view, await importOf(view), { problems: others, status: answer.status })
      }
      if (confirm) return { redirect: `${here}?done=undone` }
      return undoPage(await importOf(view), answer.body.preview as Counts)
    },
  },
]

const importOf = ({ read, params }: View) => read<Import>(`/app/v1/imports/${params.import_id}`)

function change(verb: 'stop' | 'resume'): ConsoleRoute {
  return {
    method: 'POST',
    path: `/imports/{import_id}/${verb}`,
    async handler(view) {
      await view.change('POST', `/app/v1/imports/${view.params.import_id}/${verb}`)
      return { redirect: `/imports/${view.params.import_id}?done=changed` }
    },
  }
}

/** The columns that the form shows, in its order. */
function columnsOf(form: Form): string[] {
  const names: string[] = []
  for (let i = 0; form.has(`column.${i}`); i++) names.push(form.get(`column.${i}`))
  return names
}

/** The body of a start, from what was typed: what is as it was proposed is left out. */
function startOf(form: Form, columns: string[]) {
  const mapping = columns.map((name, i) => [name, form.get(`field.${i}`).trim() || null])
  const formats = columns.flatMap((name, i) => {
    const chosen = ['decimal', 'date'].flatMap((what) => {
      const value = form.get(`${what}.${i}`)
      return value ? [[what, value]] : []
    })
    return chosen.length > 0 ? [[name, Object.fromEntries(chosen)]] : []
  })
  const values = columns.flatMap((name, i) => {
    const meanings = meaningsOf(form, i)
    return meanings.length > 0 ? [[name, Object.fromEntries(meanings)]] : []
  })
  return {
    mapping: Object.fromEntries(mapping) as Record<string, string | null>,
    dry_run: form.get('do') !== 'start',
    ...(formats.length > 0 && { formats: Object.fromEntries(formats) }),
    ...(values.length > 0 && { values: Object.fromEntries(values) }),
    ...(form.has('create_stages:has') && { create_stages: form.get('create_stages') === 'true' }),
  }
}

/** What values mean that were typed differently from their proposal; an emptied one leaves the field empty. */
function meaningsOf(form: Form, i: number): [string, string | null][] {
  const meanings: [string, string | null][] = []
  for (let j = 0; form.has(`value.${i}.${j}`); j++) {
    const typed = form.get(`means.${i}.${j}`).trim()
    if (typed !== form.get(`was.${i}.${j}`)) meanings.push([form.get(`value.${i}.${j}`), typed || null])
  }
  return meanings
}

interface Counts {
  created: number
  updated: number
  deleted: number
}

const undoPage = (one: Import, { created, updated }: Counts): Page => ({
  title: 'Undo the import',
  content: (
    <>
      <PageHeader
        title="Undo the import"
        crumbs={[IMPORTS, { href: `/imports/${one.id}`, label: one.entity }]}
      />
      <p>Nothing has happened yet. Records that somebody changed since the import stay as they are.</p>
      <Facts
        of={[
          ['Records to delete', created.toLocaleString('en')],
          ['Records to change back', updated.toLocaleString('en')],
        ]}
      />
      <PostForm action={`/imports/${one.id}/undo`} class="form" label="Undo the import">
        <div class="form-actions">
          <Button look="danger" name="do" value="undo">
            Undo the import
          </Button>
          <LinkButton href={`/imports/${one.id}`}>Cancel</LinkButton>
        </div>
      </PostForm>
    </>
  ),
})
