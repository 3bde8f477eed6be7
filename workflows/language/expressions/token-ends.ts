import { type Token, TypeGuards } from 'liquidjs'

/** Whether a segment of a path is written in brackets; the path itself may be. */
export const isInBrackets = (path: Token, { input, begin }: Token): boolean =>
  begin > path.begin && input.slice(path.begin, begin).trimEnd().endsWith('[')

/** The end of a value; LiquidJS gives that of its first name for a path. */
export function endOf(token: Token): number {
  if (!TypeGuards.isPropertyAccessToken(token)) return token.end
  return Math.max(
    token.end,
    ...token.props.map((segment) => {
      const end = endOf(segment)
      return isInBrackets(token, segment) ? token.input.indexOf(']', end) + 1 : end
    }),
  )
}
