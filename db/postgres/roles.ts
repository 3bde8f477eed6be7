/**
 * The two roles of the processes. Tenant transactions are `agx_app`'s, to which row-level security shows one
 * organization; `agx_system` sees all.
 */
export const DATABASE_ROLES = ['agx_app', 'agx_system'] as const
export type DatabaseRole = (typeof DATABASE_ROLES)[number]

/** The URLs by which a process logs in. */
export interface DatabaseUrls {
  /** URL of tenant transactions. Without `systemUrl`, its login may switch to both roles, as the owner may. */
  url: string
  /** URL of the system role. */
  systemUrl?: string | undefined
}

/** The login of a role. */
export const loginUrls = ({ url, systemUrl }: DatabaseUrls): [role: DatabaseRole, url: string][] =>
  systemUrl === undefined
    ? []
    : [
        ['agx_app', url],
        ['agx_system', systemUrl],
      ]
