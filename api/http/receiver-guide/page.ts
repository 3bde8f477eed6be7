import { escaped } from '../../../workflows/shared/escape-html.ts'
import { guidePage } from '../guide-page.ts'
import { SNIPPETS, textOf } from './snippets.ts'

const RULES = `
<p>A webhook (<a href="/docs#tag/outgoing-webhooks">/v1/webhooks/outgoing</a>) sends each event as a <code>POST</code>
with a JSON body: <code>id</code>, <code>event</code>, <code>created_at</code>, <code>data</code>, and of an update
<code>previous</code>, the old values of the changed fields. <code>GET /v1/events</code> has a schema and an example of
each event.</p>
<pre><code>POST /your/path
webhook-id: msg_01890a5d-ac96-774b-bcce-b302099a8057_01890a5d-ac97-7b5e-8d0f-3f1c2a4b5c6d
webhook-timestamp: 1790000000
webhook-signature: v1,K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4=
traceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01

{"id": "01890a5d-…", "event": "contact.created", "created_at": "2026-01-31T09:30:00.000Z", "data": {…}}</code></pre>
<ol>
<li>Verify the signature before anything else, over the bytes as received: JSON that was parsed and written again
differs.</li>
<li>Store the event and answer with any 2xx within 15 seconds; do the work after the answer. Anything else, a redirect
included, is a failure and is sent again later; <code>Retry-After</code> is honoured. <code>410</code> deactivates the
webhook.</li>
<li>Expect an event more than once, and skip a <code>webhook-id</code> that you have had: it is the same for every attempt
and resend of an event.</li>
<li>Events can arrive in another order than they happened, unless the webhook is <code>ordered</code>: compare
<code>created_at</code>, or <code>version</code> of the record.</li>
<li>The body of a test has <code>"test": true</code>.</li>
</ol>
<p>The signature is base64 of HMAC-SHA256 of <code>webhook-id.webhook-timestamp.body</code>, as in
<a href="https://www.standardwebhooks.com">Standard Webhooks</a>. The key is the secret of the webhook: base64 after
<code>whsec_</code>. While the secret is rotated there are two signatures, separated by a space. Refuse old timestamps, so
that nobody can send a recorded request again.</p>`

/** The guide for receivers of deliveries: a static page without scripts. */
export async function receiverGuide(): Promise<string> {
  const sections = await Promise.all(
    SNIPPETS.map(async (snippet) => {
      const install = snippet.install ? `<p><code>${escaped(snippet.install)}</code></p>\n` : ''
      return `<h3>${snippet.title}</h3>\n${install}<pre><code>${escaped((await textOf(snippet)).trimEnd())}</code></pre>`
    }),
  )
  return guidePage({
    path: '/docs/webhooks',
    title: 'Receiving webhooks',
    body: `${RULES}
<h2>Verify a request</h2>
${sections.join('\n')}`,
  })
}
