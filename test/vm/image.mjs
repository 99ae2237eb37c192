// What the guest boots: a Debian kernel with soft-RoCE, an initial RAM disk with the modules that it needs, and the RDMA tools, all from
// Debian packages that are unpacked into a cache and never installed.
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  chmodSync,
  closeSync,
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  readSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { basename, join } from 'node:path';
import { GUEST_INIT, GUEST_WIRE } from './guest.mjs';

const KERNEL = 'linux-image-amd64';
const TOOLS = [
  'libibverbs1',
  'ibverbs-providers',
  'ibverbs-utils',
  'libibverbs-dev',
  'librdmacm1',
  'rdmacm-utils',
  'libibumad3',
  'perftest',
  'libpci3',
  'libnl-3-200',
  'libnl-route-3-200',
];
/**
 * Modules of the guest; what they depend on is found. The checksums are looked up by name by soft-RoCE, and netem is what loses packets.
 */
const MODULES = [
  'virtio_pci',
  'virtio_console',
  '9pnet_virtio',
  '9p',
  'overlay',
  'veth',
  'bridge',
  'sch_netem',
  'crc32_generic',
  'crc32_pclmul',
  'rdma_rxe',
  'ib_uverbs',
];
/** A cache holds one image: the key changes with everything that goes into it. */
export const IMAGE_KEY = createHash('sha256')
  .update(JSON.stringify([KERNEL, TOOLS, MODULES, GUEST_INIT, GUEST_WIRE]))
  .digest('hex')
  .slice(0, 16);

const run = (command, args, options = {}) =>
  execFileSync(command, args, { maxBuffer: 1 << 28, stdio: ['ignore', 'pipe', 'pipe'], ...options });

/** The folder of the image, which is made when the cache has none. `say` hears of what takes long. */
export function provideImage(cache, say) {
  const image = join(cache, `image-${IMAGE_KEY}`);
  if (existsSync(image)) return image;
  mkdirSync(cache, { recursive: true });
  for (const old of readdirSync(cache)) if (old.startsWith('image-')) rmSync(join(cache, old), { recursive: true, force: true });
  const fresh = join(cache, `new-${process.pid}`);
  rmSync(fresh, { recursive: true, force: true });
  try {
    build(fresh, say);
    renameSync(fresh, image);
  } finally {
    rmSync(fresh, { recursive: true, force: true });
  }
  return image;
}

/** Fetches packages of the machine's own Debian into `folder`. */
function download(folder, packages) {
  mkdirSync(folder, { recursive: true });
  const args = ['-qq', '-o', 'APT::Sandbox::User=root', 'download', ...packages];
  try {
    run('apt-get', args, { cwd: folder });
  } catch {
    run('apt-get', ['-qq', '-o', 'APT::Sandbox::User=root', 'update']);
    run('apt-get', args, { cwd: folder });
  }
}

function build(folder, say) {
  say('downloading a kernel and the RDMA tools (90 MB, once)');
  const packages = join(folder, 'packages');
  // The metapackage names the kernel.
  download(join(packages, 'meta'), [KERNEL]);
  const meta = join(packages, 'meta', readdirSync(join(packages, 'meta'))[0]);
  const kernelPackage = run('dpkg-deb', ['-f', meta, 'Depends'])
    .toString()
    .trim()
    .replace(/[ ,].*/s, '');
  download(join(packages, 'kernel'), [kernelPackage, 'busybox-static']);
  download(join(packages, 'tools'), TOOLS);
  const unpacked = join(folder, 'unpacked');
  const tools = join(folder, 'tools');
  for (const [from, to] of [
    ['kernel', unpacked],
    ['tools', tools],
  ]) {
    for (const file of readdirSync(join(packages, from))) run('dpkg-deb', ['-x', join(packages, from, file), to]);
  }
  // On the machine /lib is a link to /usr/lib, and the tools lie over it.
  if (existsSync(join(tools, 'lib'))) {
    cpSync(join(tools, 'lib'), join(tools, 'usr/lib'), { recursive: true, verbatimSymlinks: true });
    rmSync(join(tools, 'lib'), { recursive: true });
  }
  mkdirSync(join(tools, 'usr/local/bin'), { recursive: true });
  writeFileSync(join(tools, 'usr/local/bin/wire'), GUEST_WIRE);
  chmodSync(join(tools, 'usr/local/bin/wire'), 0o755);
  const boot = readdirSync(join(unpacked, 'boot')).find((name) => name.startsWith('vmlinuz-'));
  extractKernel(join(unpacked, 'boot', boot), join(folder, 'vmlinux'));
  makeRamDisk(unpacked, folder);
  writeFileSync(join(folder, 'kernel'), kernelPackage);
  for (const part of ['packages', 'unpacked', 'ramdisk']) rmSync(join(folder, part), { recursive: true, force: true });
}

/** The bare kernel inside of a compressed one: the guest is emulated, and would unpack it some hundred times slower. */
function extractKernel(from, to) {
  const file = openSync(from, 'r');
  const head = Buffer.alloc(0x260);
  readSync(file, head, 0, head.length, 0);
  closeSync(file);
  const setupSectors = head[0x1f1] || 4;
  const payloadAt = (setupSectors + 1) * 512 + head.readUInt32LE(0x248);
  const payload = readFileSync(from).subarray(payloadAt, payloadAt + head.readUInt32LE(0x24c));
  try {
    writeFileSync(to, run('xz', ['-dc', '--single-stream'], { input: payload, stdio: ['pipe', 'pipe', 'ignore'] }));
  } catch {
    // Compressed in another way: it boots too, only later.
    copyFileSync(from, to);
  }
}

function makeRamDisk(unpacked, folder) {
  const disk = join(folder, 'ramdisk');
  for (const part of ['bin', 'm', 'proc', 'sys', 'dev', 'host', 'tools', 'control', 'rw', 'all'])
    mkdirSync(join(disk, part), { recursive: true });
  const modulesRoot = join(unpacked, 'lib/modules');
  const files = new Map();
  for (const path of readdirSync(modulesRoot, { recursive: true })) {
    if (!/\.ko(\.xz)?$/.test(path)) continue;
    files.set(
      basename(path)
        .replace(/\.ko.*/, '')
        .replaceAll('-', '_'),
      join(modulesRoot, path),
    );
  }
  const order = [];
  const add = (name) => {
    const file = files.get(name);
    // Not among the files: built in.
    if (file === undefined || order.includes(name)) return;
    const bytes = file.endsWith('.xz') ? run('xz', ['-dc', file]) : readFileSync(file);
    writeFileSync(join(disk, 'm', `${name}.ko`), bytes);
    const depends = /(?:^|\0)depends=([^\0]*)/.exec(bytes.toString('latin1'))?.[1] ?? '';
    for (const needed of depends.split(',')) if (needed !== '') add(needed.replaceAll('-', '_'));
    order.push(name);
  };
  for (const name of MODULES) add(name.replaceAll('-', '_'));
  writeFileSync(join(disk, 'm/order'), `${order.join('\n')}\n`);
  copyFileSync(join(unpacked, 'bin/busybox'), join(disk, 'bin/busybox'));
  writeFileSync(join(disk, 'init'), GUEST_INIT);
  chmodSync(join(disk, 'init'), 0o755);
  const archive = run('sh', ['-c', 'find . | ./bin/busybox cpio -o -H newc 2>/dev/null'], { cwd: disk });
  writeFileSync(join(folder, 'initrd'), archive);
}
