import type { Route } from '../http/route.ts'
import { meRoutes } from './me.ts'

/** Every operation of /v1. A new resource: a file beside this one and a line here. */
export const routes: Route[] = [...meRoutes]
