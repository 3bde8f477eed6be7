/**
 * The two roles of the processes. Tenant transactions are `agx_app`'s, to which row-level security shows one
 * organization; `agx_system` sees all.
 */
export const DATABASE_ROLES = ['agx_app', 'agx_system'] as const
export type DatabaseRole = (typeof DATABASE_ROLES)[number]

/** The URLs by which a process logs in. */
export interface DatabaseUrls {
  /** Of tenant transactions. Without `systemUrl`: of a login that may switch to both roles, such as the owner. */
  url: string
  /** Of the system role. */
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
