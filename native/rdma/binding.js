// Finds the binary of this package: one built here, else a prebuilt one for this processor and C library. Imports node:*.
import { closeSync, existsSync, openSync, readSync } from 'node:fs';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';

const ABI = 2;
const require = createRequire(import.meta.url);

/** The loader that Node's own binary names in its first page says which C library this is; a report of the process says it, too, in milliseconds. */
function isMusl() {
  const page = Buffer.alloc(4096);
  const file = openSync(process.execPath);
  readSync(file, page, 0, page.length, 0);
  closeSync(file);
  if (page.includes('/ld-linux')) return false;
  return page.includes('/ld-musl') || process.report?.getReport()?.header?.glibcVersionRuntime === undefined;
}

/** One at a time: which C library this is takes a look at a file. */
function* candidates() {
  const pathOf = (path) => fileURLToPath(new URL(path, import.meta.url));
  yield pathOf('build/Release/rdma.node');
  yield pathOf(`prebuilds/linux-${process.arch}/node-rdma.${isMusl() ? 'musl' : 'glibc'}.node`);
}

/** The addon, or why there is none. */
export function loadAddon() {
  if (process.platform !== 'linux') return { reason: `node-rdma is for Linux, this is ${process.platform}` };
  let reason = `node-rdma has no binary for linux-${process.arch} here (building one needs a C++ compiler and the headers of libibverbs)`;
  for (const path of candidates()) {
    if (!existsSync(path)) continue;
    try {
      const addon = require(path);
      if (addon.abi === ABI) return { addon };
      reason = `${path} is of another version (${addon.abi}, ${ABI} is wanted)`;
    } catch (error) {
      reason = error.message;
    }
  }
  return { reason };
}
