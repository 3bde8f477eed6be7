import assert from 'node:assert/strict'
import fc from 'fast-check'
import { AppError } from '../../../../db/model/errors.ts'
import { parseBody, parseText, textOfBody } from '../../../../db/model/incoming/parse-body.ts'

const parse = (body: string | Buffer, type: string) => parseBody(Buffer.from(body as string), type)
const refused = (body: string | Buffer, type: string, error = 'invalid_request') =>
  assert.throws(
    () => parse(body, type),
    (thrown) => thrown instanceof AppError && thrown.type === error,
  )

describe('bodies of incoming webhooks', () => {
  it('reads JSON, also with a +json type or a byte order mark', () => {
    assert.deepEqual(parse('{"a":1}', 'application/json; charset=utf-8'), { a: 1 })
    assert.deepEqual(parse('\uFEFF{"a":1}', 'application/vnd.acme+json'), { a: 1 })
    assert.deepEqual(parse('[1]', 'application/json'), { items: [1] })
  })

  it('reads nested forms in UTF-8 and Latin-1', () => {
    const form = 'application/x-www-form-urlencoded'
    assert.deepEqual(parse('fields[email][value]=a%40b.c&n=J%C3%B6rg', form), {
      fields: { email: { value: 'a@b.c' } },
      n: 'Jörg',
    })
    assert.deepEqual(parse('n=J%F6rg', `application/x-www-form-urlencoded; charset=ISO-8859-1`), {
      n: 'Jörg',
    })
  })

  it('reads XML with attributes, CDATA and the entities of XML', () => {
    const xml =
      '<?xml version="1.0"?><l:lead id="a&amp;b"><name>A &amp; &#233;</name><c><![CDATA[x &amp; <y>]]></c></l:lead>'
    for (const type of ['application/xml', 'text/xml', 'application/atom+xml'])
      assert.deepEqual(parse(xml, type), { id: 'a&b', name: 'A & é', c: 'x &amp; <y>' })
  })

  it('keeps the text of an XML element and its attributes; child elements precede attributes of their name', () => {
    const xml =
      '<f name="Form"><name>Ada</name><mail type="w" id="7">a@b.c</mail><c k="1"><![CDATA[x]]></c><e nil="true"/></f>'
    assert.deepEqual(parse(xml, 'application/xml'), {
      name: 'Ada',
      mail: { type: 'w', id: '7', '#text': 'a@b.c' },
      c: { k: '1', '#text': 'x' },
      e: { nil: 'true' },
    })
    assert.deepEqual(parse('<mail type="w">a@b.c</mail>', 'application/xml'), {
      mail: { type: 'w', '#text': 'a@b.c' },
    })
  })

  it('reads XML in the encoding that it declares; the charset of Content-Type wins', () => {
    const xml = '<?xml version="1.0" encoding="ISO-8859-1"?><a><name>Jörg</name></a>'
    assert.deepEqual(parse(Buffer.from(xml, 'latin1'), 'text/xml'), { name: 'Jörg' })
    assert.deepEqual(parse(xml, 'text/xml; charset=utf-8'), { name: 'Jörg' })
    assert.deepEqual(parse("<?xml version='1.0'?><a><name>Jörg</name></a>", 'text/xml'), { name: 'Jörg' })
  })

  it('reads XML that says UTF-16 and is UTF-8', () => {
    const xml = '<?xml version="1.0" encoding="utf-16"?><a><n>Jörg</n></a>'
    assert.deepEqual(parse(xml, 'text/xml'), { n: 'Jörg' })
  })

  it('reads every charset that the platform knows, and the stored text as the body', () => {
    const bytes = (...codes: number[]) => Buffer.from(codes)
    const json = Buffer.concat([Buffer.from('{"n":"'), bytes(0xcf, 0xf0, 0xe8), Buffer.from('"}')])
    const cases: [Buffer, string, string][] = [
      [json, 'application/json; charset=windows-1251', 'При'],
      [Buffer.from('n=%83A%83%5c'), `application/x-www-form-urlencoded; charset=Shift_JIS`, 'アソ'],
      [
        Buffer.concat([Buffer.from('n=a+'), bytes(0xf6), Buffer.from('%F6')]),
        `application/x-www-form-urlencoded; charset=latin1`,
        'a öö',
      ],
      [Buffer.from('\ufeff<a><n>Ж</n></a>', 'utf16le'), 'text/xml', 'Ж'],
      [
        Buffer.from('<?xml version="1.0" encoding="ISO-8859-2"?><a><n>\xb1</n></a>', 'latin1'),
        'application/xml',
        'ą',
      ],
    ]
    for (const [body, type, n] of cases) {
      assert.deepEqual(parseBody(body, type), { n }, type)
      assert.deepEqual(parseText(textOfBody(body, type), type), { n }, type)
    }
  })

  it('reads multipart forms as others, a file as its name', () => {
    const body = [
      'preamble',
      '--b d',
      'Content-Disposition: form-data; name="data[email]"',
      '',
      'a+b@c.d & co',
      '--b d',
      'content-disposition: form-data; name="cv"; filename="Jörg \\"x\\".pdf"',
      'Content-Type: application/pdf',
      '',
      '%PDF\u0000--b',
      '--b d',
      'Content-Disposition: form-data; name=empty',
      '',
      '',
      '--b d--',
      'epilogue',
    ].join('\r\n')
    assert.deepEqual(parse(body, 'multipart/form-data; boundary="b d"'), {
      data: { email: 'a+b@c.d & co' },
      cv: 'Jörg "x".pdf',
      empty: '',
    })
  })

  it('never throws anything but a refusal, for any multipart body', () => {
    const piece = fc.constantFrom(
      '--b',
      '--',
      '\r\n',
      '\r\n\r\n',
      'Content-Disposition: form-data; name="a"',
      '; filename="x"',
      'x',
      '"',
    )
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 30 }), (pieces) => {
        try {
          parse(pieces.join(''), 'multipart/form-data; boundary=b')
        } catch (thrown) {
          assert.ok(thrown instanceof AppError, String(thrown))
        }
      }),
    )
  })

  it('refuses an XML entity bomb', () => {
    const bomb = '<!DOCTYPE a [<!ENTITY b "bbbb"><!ENTITY c "&b;&b;&b;">]><a>&c;</a>'
    refused(bomb, 'application/xml')
  })

  it('refuses malformed bodies', () => {
    refused('{"a":', 'application/json')
    refused('"text"', 'application/json')
    refused('', 'application/json')
    refused(Buffer.from([0xff, 0xfe]), 'application/json')
    refused('<a><b></a>', 'application/xml')
    refused('<a><email>a@b.c</email></a><b/>', 'application/xml')
    refused('<a><email>a@b.c</email></a><a/>', 'application/xml')
    refused('<a/>text', 'application/xml')
    refused('<a/><![CDATA[text]]>', 'application/xml')
    assert.deepEqual(parse(' <!-- 1 --><a><b>2</b></a> <!-- 3 --> ', 'application/xml'), { b: '2' })
    refused('<a>'.repeat(5_000) + '</a>'.repeat(5_000), 'application/xml')
    refused('['.repeat(50_000) + ']'.repeat(50_000), 'application/json')
    refused(`a${'[b]'.repeat(100)}=1`, 'application/x-www-form-urlencoded')
    refused('a=1&'.repeat(2_000), 'application/x-www-form-urlencoded')
    refused('a', 'multipart/form-data')
    for (const cut of [
      '',
      '--b',
      '--b\r\n',
      '--b\r\n\r\n\r\n--b--',
      '--b\r\nX: 1\r\n\r\nv\r\n--b--',
      'x--b--',
    ])
      refused(cut, 'multipart/form-data; boundary=b')
    const many = '--b\r\nContent-Disposition: form-data; name="a"\r\n\r\n1\r\n'.repeat(2_000)
    refused(`${many}--b--`, 'multipart/form-data; boundary=b')
    refused('<?xml version="1.0" encoding="x-99"?><a/>', 'application/xml', 'unsupported_media_type')
    refused('a', '', 'unsupported_media_type')
    refused('{}', 'application/json; charset=utf-99', 'unsupported_media_type')
    refused('{}', 'application/json; charset=utf-16', 'invalid_request')
    refused('n=%81', 'application/x-www-form-urlencoded; charset=shift_jis', 'invalid_request')
  })

  it('refuses prototype names', () => {
    refused('{"a":{"__proto__":{"x":1}}}', 'application/json')
    refused('{"constructor":{"prototype":{}}}', 'application/json')
    refused('<a><__proto__>x</__proto__></a>', 'application/xml')
    assert.equal('polluted' in parse('__proto__[polluted]=1&a=1', 'application/x-www-form-urlencoded'), false)
  })

  it('returns an object or throws a refusal for any bytes', () => {
    const types = fc.constantFrom('application/json', 'application/xml', 'application/x-www-form-urlencoded')
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), types, (bytes, type) => {
        try {
          assert.equal(typeof parseBody(Buffer.from(bytes), type), 'object')
        } catch (error) {
          if (!(error instanceof AppError)) throw error
        }
      }),
    )
  })
})
