// Where the headers are that the native parts need. Those of Node-API: of this Node when they were installed with it, else of the package
// node-api-headers. Those of libibverbs, for node-rdma, and of PMIx, for a test: the system's. Nothing is ever downloaded.
import { cpSync, existsSync, mkdirSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';

const require = createRequire(import.meta.url);

/** What node-gyp wants of Node's common.gypi, where only headers are there. */
const COMMON_GYPI = `{
  'target_defaults': {
    'default_configuration': 'Release',
    'configurations': {'Debug': {'cflags': ['-g', '-O0']}, 'Release': {'cflags': ['-O2']}},
    'cflags': ['-pthread'],
    'ldflags': ['-pthread'],
  },
}
`;

/**
 * A folder for node-gyp's --nodedir: it has include/node with node_api.h and common.gypi. `scratch` is a folder where one may be made.
 * Answers { folder, source } or { missing: why }.
 */
export function headersFolder(scratch) {
  const prefix = dirname(dirname(realpathSync(process.execPath)));
  const own = join(prefix, 'include', 'node');
  if (existsSync(join(own, 'node_api.h')) && existsSync(join(own, 'common.gypi'))) return { folder: prefix, source: own };
  let packaged;
  try {
    packaged = require('node-api-headers').include_dir;
  } catch {
    return { missing: `no headers of Node beside ${process.execPath}, and the package node-api-headers is not installed` };
  }
  const folder = join(scratch, 'native-headers');
  const include = join(folder, 'include', 'node');
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(include, { recursive: true });
  cpSync(packaged, include, { recursive: true });
  writeFileSync(join(include, 'common.gypi'), COMMON_GYPI);
  writeFileSync(join(include, 'config.gypi'), JSON.stringify({ target_defaults: {}, variables: {} }));
  return { folder, source: packaged };
}

/** Where the headers of libibverbs are looked for. */
export const verbsInclude = process.env.RDMA_INCLUDE ?? '/usr/include';

/** Why nothing can be built that includes them; undefined when they are there. */
export function verbsHeadersMissing() {
  return existsSync(join(verbsInclude, 'infiniband/verbs.h')) ? undefined : 'no <infiniband/verbs.h> (Debian package libibverbs-dev)';
}

/** Where Debian has the headers of PMIx, as a list of one folder; empty where they are not. They are compared with ours, and not built with. */
export function pmixInclude() {
  const folder = `/usr/lib/${process.arch === 'arm64' ? 'aarch64' : 'x86_64'}-linux-gnu/pmix2/include`;
  return existsSync(join(folder, 'pmix.h')) ? [folder] : [];
}

/** Why ours cannot be compared with them; undefined when they are there. */
export const pmixHeadersMissing = () => (pmixInclude().length > 0 ? undefined : 'no <pmix.h> (Debian package libpmix-dev)');
