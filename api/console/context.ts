import { createContext } from 'preact'
import { useContext } from 'preact/hooks'
import type { AssetPaths } from './assets.ts'
import type { View } from './route.ts'

/** What components read of the request: the session, the time zone, the addresses of the assets. */
export interface PageContext {
  view: View
  assets: AssetPaths
}

const Context = createContext<PageContext | undefined>(undefined)

export const PageProvider = Context.Provider

export function usePage(): PageContext {
  const page = useContext(Context)
  if (!page) throw new Error('a component of the console is rendered in a page only')
  return page
}
