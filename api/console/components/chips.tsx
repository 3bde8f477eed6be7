/** Short texts beside each other: tags, events, scopes. */
export const Chips = ({ of: texts }: { of: readonly string[] }) => (
  <span class="chips">
    {texts.map((text) => (
      <span class="chip" key={text} dir="auto">
        {text}
      </span>
    ))}
  </span>
)
