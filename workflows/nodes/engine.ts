import { LANGUAGE_ENGINE, LATER_LANGUAGE } from '../language/definition.ts'
import { nodeTypes } from './index.ts'

/**
 * The engine of this version: what its interpreter can run. Each program states the engine that it needs, and a worker
 * claims a run only if its own engine is at least as great: in a deploy, or after a rollback, older workers leave the
 * runs of newer programs to newer workers.
 */
export const ENGINE = Math.max(
  LANGUAGE_ENGINE,
  ...Object.values(LATER_LANGUAGE),
  ...Object.values(nodeTypes).flatMap(({ engines }) => engines),
)
