/** A short valid authoring spec, for documentation. */
export const EXAMPLE_SPEC = `name: Greet
inputs: {email: {type: string, required: true}}
nodes:
  save:
    type: crm_manager
    config: {operation: upsert, entity: contacts, by: email, fields: {email: "{{ inputs.email }}"}}
outputs: {contact_id: "{{ nodes.save.output.record.id }}"}
`
