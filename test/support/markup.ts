import assert from 'node:assert/strict'

/** Markup in a stored text, which pages must show as it is. */
export const EVIL = `<script>alert(1)</script>"'><img src=x onerror=alert(2)>`

/** Asserts that a page shows EVIL as text. */
export function assertEscaped(html: string): void {
  assert.match(html, /&lt;script>alert\(1\)/)
  assert.doesNotMatch(html, /<script>alert|<img/)
}
