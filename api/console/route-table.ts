import { accountRoutes } from './pages/account.tsx'
import { designRoutes } from './pages/design.tsx'
import { homeRoutes } from './pages/home.tsx'
import { keyPages } from './pages/keys.tsx'
import { resetRoutes } from './pages/reset.tsx'
import { signInRoutes } from './pages/sign-in.tsx'
import { signUpRoutes } from './pages/sign-up.tsx'
import type { ConsoleRoute } from './route.ts'

/** Every address of the console. To add a page, add a file to `pages/` and a line here. */
export const consoleRoutes: ConsoleRoute[] = [
  ...signInRoutes,
  ...signUpRoutes,
  ...resetRoutes,
  ...homeRoutes,
  ...accountRoutes,
  ...keyPages,
  ...designRoutes,
]
