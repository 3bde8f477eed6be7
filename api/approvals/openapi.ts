import { errorResponse, errorResponseOf } from '../http/openapi-errors.ts'
import type { Examples } from '../http/openapi-examples.ts'
import type { Json, Shapes } from '../http/openapi-schemas.ts'
import { approvalShape, decisionShape } from './shape.ts'

export { APPROVAL_PATH } from './decide.ts'

const PAGE = { schema: { type: 'string' }, example: '<!doctype html>…' }
const READING = [404, 410, 431, 500, 503]
const DECIDING = [400, 404, 409, 410, 413, 415, 422, 431, 500, 503]

const nameOf = (status: number) => `${errorResponse(status).$ref.split('/').at(-1)}OrPage`

/** The errors of the link, by name: those of the API, and HTML pages for browsers. */
export const approvalResponses = Object.fromEntries(
  DECIDING.map((status): [string, Json] => {
    const { content, ...rest } = errorResponseOf(status)
    const { schema, examples } = content['application/json']
    const [first] = Object.values(examples)
    return [
      nameOf(status),
      { ...rest, content: { 'application/json': { schema, example: first?.value }, 'text/html': PAGE } },
    ]
  }),
)

/**
 * The operations of the approval link. They are outside of both route tables, because the token is their credential.
 */
export function approvalOperations(shapes: Shapes, examples: Examples) {
  const shape = shapes.answer(approvalShape, 'Approval')
  const answer = (description: string, id: string): Json => ({
    description,
    headers: { 'X-Request-Id': { $ref: '#/components/headers/X-Request-Id' } },
    content: { 'application/json': { schema: shape, ...examples.of(id) }, 'text/html': PAGE },
  })
  const common = {
    tags: ['Approvals'],
    security: [],
    parameters: [
      {
        name: 'token',
        in: 'path' as const,
        required: true as const,
        description: 'The token in the `link` of the approval.',
        schema: { type: 'string' },
      },
    ],
  }
  const errors = (statuses: number[]) =>
    Object.fromEntries(
      statuses.map((status) => [status, { $ref: `#/components/responses/${nameOf(status)}` }]),
    )
  return {
    GET: {
      ...common,
      operationId: 'getApproval',
      summary: 'Retrieve an approval',
      description:
        'Returns the pending request for a decision, or the decision. Changes nothing. Browsers get a page.',
      responses: { '200': answer('Success.', 'getApproval'), ...errors(READING) },
    },
    POST: {
      ...common,
      operationId: 'answerApproval',
      summary: 'Answer an approval',
      description:
        'Records the decision; the run continues with it. 409 if the approval is already decided, 410 if it has expired or its run has ended.',
      requestBody: {
        required: true,
        content: {
          'application/json': {
            schema: shapes.body(decisionShape, 'AnswerApprovalRequest'),
            example: { decision: 'approved', comment: 'For this year only.' },
          },
        },
      },
      responses: {
        '200': answer('The decision is recorded.', 'answerApproval'),
        ...errors(DECIDING),
      },
    },
  }
}
