import { isApplicable } from '../../../workflows/authoring/apply-hints.ts'
import { type Edited, fixOf } from '../workflows/edit.ts'
import { Button } from './button.tsx'
import { type Finding, Findings, findingsOf, Lines } from './findings.tsx'
import { PostForm } from './post-form.tsx'

/** What the editor offers to insert. */
export interface NodeChoice {
  node_type: string
  title: string
}

/** Lines that can be typed without a script before the numbers end. */
const SPARE_LINES = 100

/**
 * The YAML of a workflow with numbered lines, what was found in it, and buttons that check, insert, fix and save. With a
 * script it is checked as one types (assets/editor.ts).
 */
export function SpecEditor(props: {
  action: string
  edited: Edited
  nodes: readonly NodeChoice[]
  /** Further buttons: one that saves is the first. */
  save: string
  publish?: string | undefined
  version?: number
}) {
  const { action, edited, nodes, save, publish, version } = props
  const { spec, validation, problems = [] } = edited
  const numbers = Array.from({ length: spec.split('\n').length + SPARE_LINES }, (_, i) => i + 1)
  return (
    <>
      {problems.map((problem) => (
        <p class="notice red" role="alert" key={problem}>
          {problem}
        </p>
      ))}
      <PostForm action={action} class="form wide-form" label="The workflow in YAML">
        {version !== undefined && <input type="hidden" name="version" value={version} />}
        <InsertBar nodes={nodes} />
        <div class="field">
          <label for="f-spec">YAML</label>
          <div class="editor" data-editor>
            <pre class="gutter" aria-hidden="true">
              {numbers.join('\n')}
            </pre>
            <textarea
              id="f-spec"
              name="spec"
              class="mono yaml"
              rows={24}
              spellcheck={false}
              autocapitalize="off"
              autocomplete="off"
              dir="ltr"
            >
              {spec.startsWith('\n') ? `\n${spec}` : spec}
            </textarea>
          </div>
        </div>
        <div class="form-actions">
          <Button look="primary" name="do" value="save">
            {save}
          </Button>
          {publish && (
            <Button name="do" value="publish">
              {publish}
            </Button>
          )}
          <Button name="do" value="check">
            Check
          </Button>
          <a class="button plain" href="/docs/workflows" target="_blank" rel="noreferrer">
            How to write one
          </a>
        </div>
        <div id="findings" aria-live="polite">
          {validation && <Findings validation={validation} fix={Fix} />}
        </div>
      </PostForm>
      {validation && findingsOf(validation).length > 0 && (
        <div class="found-lines">
          <Lines text={spec} findings={findingsOf(validation)} />
        </div>
      )}
    </>
  )
}

/** The first button of the form: what Enter in its field presses. */
const InsertBar = ({ nodes }: { nodes: readonly NodeChoice[] }) => (
  <div class="insert-bar">
    <label for="f-node_type">Node</label>
    <input
      id="f-node_type"
      name="node_type"
      type="text"
      list="node-types"
      autocomplete="off"
      spellcheck={false}
      placeholder="Search a node type"
    />
    <datalist id="node-types">
      {nodes.map(({ node_type, title }) => (
        <option value={node_type} label={title} key={node_type} />
      ))}
    </datalist>
    <Button name="do" value="insert" icon="plus">
      Insert
    </Button>
    <a href="/workflows/nodes">All nodes</a>
    <span class="muted" role="status" />
  </div>
)

const Fix = (finding: Finding) =>
  isApplicable(finding) ? (
    <button type="submit" class="button plain small" name="do" value={fixOf(finding)}>
      Apply
    </button>
  ) : null
