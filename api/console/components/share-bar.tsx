/** A share of a whole as a bar, beside the numbers that say the same: screen readers skip it. */
export function ShareBar({ of: share, tone = 'accent' }: { of: number; tone?: 'accent' | 'amber' | 'red' }) {
  const width = Math.round(Math.min(1, Math.max(0, share)) * 1_000) / 10
  return (
    <svg
      class={`share ${tone}`}
      viewBox="0 0 100 8"
      width="100"
      height="8"
      preserveAspectRatio="none"
      aria-hidden="true"
    >
      <rect class="whole" width="100" height="8" />
      <rect class="part" width={width} height="8" />
    </svg>
  )
}
