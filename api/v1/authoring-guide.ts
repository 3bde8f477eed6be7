import { z } from 'zod'
import { asMarkdown, authoringGuide, DETAILS, topicsOf } from '../../workflows/authoring/guide/index.ts'
import { type Route, route } from '../http/route.ts'
import { catalogue } from './catalogue.ts'

const TOPICS = topicsOf(catalogue) as [string, ...string[]]

/** The guide on writing specs. */
export const authoringGuideRoutes: Route[] = [
  route({
    method: 'GET',
    path: '/workflows/authoring-guide',
    scope: 'workflows:read',
    id: 'getAuthoringGuide',
    tag: 'Workflows',
    summary: 'Retrieve the authoring guide',
    description:
      'Returns a guide on writing YAML specs, generated from the schemas that validate them: the language, the node types, the records and examples. It suffices to write specs, in at most 30 KB; `topic` returns one subject in more detail. With `Accept: text/markdown` the response is the text alone, examples included.',
    query: z.strictObject({
      topic: z
        .enum(TOPICS)
        .optional()
        .describe('One chapter, node type or kind of record, in full detail by default.'),
      detail: z
        .enum(DETAILS)
        .optional()
        .describe(
          '`full` adds JSON Schemas and longer descriptions. Default: `standard`; of a topic, `full`.',
        ),
    }),
    response: {
      status: 200,
      schema: z
        .object({
          object: z.literal('authoring_guide'),
          guide: z.string().meta({ description: 'Markdown.' }),
          version: z.string().meta({ description: 'Changes when the guide does.' }),
          examples: z
            .array(
              z.object({
                title: z.string(),
                spec: z.string().meta({ description: 'A valid spec in YAML.' }),
              }),
            )

            .meta({
              description: 'Whole specs, which `guide` leaves out: a few, or all of the topic `examples`.',
            }),
        })
        .meta({ id: 'AuthoringGuide' }),
      markdown: asMarkdown,
    },
    handler: async ({ query }) => {
      const { guide, version, examples } = authoringGuide(catalogue, query)
      return { object: 'authoring_guide' as const, guide, version, examples: [...examples] }
    },
  }),
]
