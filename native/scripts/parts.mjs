// The parts that are built from C++, each in a folder of its name beside this one, and how their sources are copied to where they are built
// apart.
import { cpSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const NATIVE = dirname(dirname(fileURLToPath(import.meta.url)));

export const PARTS = [
  { key: 'addon', name: 'native part', binary: 'multirail.node' },
  { key: 'blas', name: 'BLAS of hpl', binary: 'blas.node' },
  { key: 'rdma', name: 'node-rdma', binary: 'rdma.node', needsVerbs: true },
  { key: 'impair', name: 'forwarder of the lab', binary: 'impair.node' },
  { key: 'pmix', name: 'PMIx', binary: 'pmix.node' },
].map((part) => ({ ...part, folder: join(NATIVE, part.key) }));

/** What a part is built from, seen from the folder `native`: `common` is for all of them. */
export const sourcesOf = (part) => ['common', ...['package.json', 'binding.gyp', 'src'].map((name) => join(part.key, name))];

/** Copies what a part is built from into `to`, as it lies here. Answers the folder of the part there. */
export function copySources(part, to) {
  for (const name of sourcesOf(part)) cpSync(join(NATIVE, name), join(to, name), { recursive: true });
  return join(to, part.key);
}
