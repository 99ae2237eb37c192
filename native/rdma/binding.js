// Finds the binary of this package: one built here, else a prebuilt one for this processor and C library. Imports node:*.
import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';

const ABI = 2;
const require = createRequire(import.meta.url);

const isMusl = () => process.report?.getReport()?.header?.glibcVersionRuntime === undefined;

/** One at a time: which C library this is takes milliseconds to find out. */
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
