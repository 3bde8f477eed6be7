import { readFileSync } from 'node:fs'

/**
 * `npm run sbom`: prints the packages of production as a CycloneDX document, from package-lock.json. Not by `npm sbom
 * --omit=dev`: it leaves out each package of production that a package of development needs, too.
 */
const lock = JSON.parse(readFileSync(new URL('../package-lock.json', import.meta.url), 'utf8'))
const MODULES = 'node_modules/'

const purlOf = (name, version) => `pkg:npm/${name.replace('@', '%40')}@${version}`

function componentOf(path, { version, integrity, license }) {
  const name = path.slice(path.lastIndexOf(MODULES) + MODULES.length)
  const [algorithm, digest] = integrity?.split('-') ?? []
  return {
    type: 'library',
    'bom-ref': path,
    name,
    version,
    purl: purlOf(name, version),
    // A name may be any text, an expression must be of SPDX.
    ...(license && {
      licenses: [/\s/.test(license) ? { expression: license } : { license: { name: license } }],
    }),
    ...(algorithm === 'sha512' && {
      hashes: [{ alg: 'SHA-512', content: Buffer.from(digest, 'base64').toString('hex') }],
    }),
  }
}

const components = Object.entries(lock.packages)
  .filter(([path, { dev }]) => path.startsWith(MODULES) && !dev)
  .map(([path, entry]) => componentOf(path, entry))
const { name, version } = lock
process.stdout.write(
  `${JSON.stringify(
    {
      bomFormat: 'CycloneDX',
      specVersion: '1.6',
      version: 1,
      metadata: { component: { type: 'application', 'bom-ref': name, name, version } },
      components,
    },
    null,
    2,
  )}\n`,
)
