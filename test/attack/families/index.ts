import type { Family } from '../family.ts'
import { computation } from './computation.ts'
import { csrf } from './csrf.ts'
import { egress } from './egress.ts'
import { idPlacesFamily } from './id-places.ts'
import { mails } from './mails.ts'
import { mcp } from './mcp.ts'
import { mcpRequests } from './mcp-requests.ts'
import { references } from './references.ts'
import { rowSecurity } from './row-security.ts'
import { sandbox } from './sandbox.ts'
import { scopes } from './scopes.ts'
import { storage } from './storage.ts'
import { storms } from './storms.ts'
import { tarPits } from './tar-pits.ts'
import { templates } from './templates.ts'
import { tenants } from './tenants.ts'

/** Every kind of attack. To add one, add a file beside this one, and a line here. */
export const FAMILIES: Family[] = [
  tenants,
  references,
  idPlacesFamily,
  scopes,
  mcp,
  mcpRequests,
  csrf,
  rowSecurity,
  egress,
  sandbox,
  templates,
  computation,
  storms,
  tarPits,
  storage,
  mails,
]
