// Runs a command in a small emulated machine whose kernel has soft-RoCE: real queue pairs over cables that can be pulled.
//   node test/vm/vm.mjs [options] -- COMMAND [ARGUMENT...]
//     --devices N    RDMA devices, rxe0 … (default 2)       --timeout S   of the whole run (default 300)
//     --mtu BYTES    of their links (default 1500)          --cpus N      of the guest (default: as here, 2 to 4)
//     --write DIR    a folder that the guest may write      --env NAME    hands a variable in; both may be repeated
//     --build-only   makes the image and runs nothing
// The guest sees this machine's own root file system, read-only, with the same programs at the same paths and in the same folder; what
// it writes is forgotten. `wire cut|mend N` and `wire loss N PERCENT` pull, restore and impair the cable of device N. vm.mjs streams what
// the command prints and ends with its status; 124 when the time is over, 125 when the guest failed, 77 (with the reason) when it cannot run.
import { spawn, spawnSync } from 'node:child_process';
import { accessSync, constants, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { availableParallelism, homedir, tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import process from 'node:process';
import { parseArgs } from 'node:util';
import { guestScript } from './guest.mjs';
import { provideImage } from './image.mjs';

const CANNOT = 77;
const GUEST_FAILED = 125;
const TIMED_OUT = 124;
const MEMORY_MIB = 2048;
/** What the machine itself must have: a program, and the package that brings it. */
const NEEDED = [
  ['qemu-system-x86_64', 'qemu-system-x86'],
  ['ip', 'iproute2'],
  ['xz', 'xz-utils'],
  ['dpkg-deb', 'dpkg'],
];

const say = (text) => process.stderr.write(`vm: ${text}\n`);
const present = (program) => spawnSync('sh', ['-c', `command -v ${program}`], { stdio: 'ignore' }).status === 0;

/** Why no guest can run here, after installing what may be installed; undefined when one can. */
export function whyNot() {
  if (process.platform !== 'linux' || process.arch !== 'x64')
    return `the guest is made for linux x64, this is ${process.platform} ${process.arch}`;
  if (!existsSync('/etc/debian_version')) return 'its kernel and tools are Debian packages, and this is no Debian';
  const missing = NEEDED.filter(([program]) => !present(program)).map(([, name]) => name);
  if (missing.length === 0) return undefined;
  if (process.getuid() !== 0) return `${missing.join(', ')} missing, and only root can install them`;
  if (process.env.MULTIRAIL_TEST_APT === '0') return `${missing.join(', ')} missing, and MULTIRAIL_TEST_APT=0 forbids to install them`;
  say(`installing ${missing.join(', ')}`);
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' };
  for (const attempt of [1, 2]) {
    const done = spawnSync('apt-get', ['install', '-y', '-qq', '--no-install-recommends', ...missing], { env, stdio: 'ignore' });
    if (done.status === 0) return undefined;
    if (attempt === 1) spawnSync('apt-get', ['update', '-qq'], { stdio: 'ignore' });
  }
  return `${missing.join(', ')} could not be installed`;
}

/** Hardware virtualization, where it is that of the processor: one kind of /dev/kvm runs only kernels that were made for it. */
function accelerators() {
  const wanted = process.env.MULTIRAIL_VM_ACCEL;
  if (wanted !== undefined) return wanted.split(' ');
  try {
    accessSync('/dev/kvm', constants.W_OK);
  } catch {
    return ['tcg'];
  }
  const hasOwn = /\b(vmx|svm)\b/.test(readFileSync('/proc/cpuinfo', 'utf8')) && !existsSync('/sys/module/kvm_pvm');
  return hasOwn ? ['kvm', 'tcg'] : ['tcg'];
}

function share(id, path, options) {
  return ['-fsdev', `local,id=${id},path=${path},security_model=none${options}`, '-device', `virtio-9p-pci,fsdev=${id},mount_tag=${id}`];
}

function qemuArguments(accelerator, image, control, shared, cpus) {
  const args = [
    '-accel',
    accelerator === 'kvm' ? 'kvm' : 'tcg,thread=multi',
    '-cpu',
    accelerator === 'kvm' ? 'host' : 'max',
    '-machine',
    'q35',
  ];
  args.push('-smp', String(cpus), '-m', String(MEMORY_MIB), '-nodefaults', '-display', 'none', '-no-reboot');
  args.push('-kernel', join(image, 'vmlinux'), '-initrd', join(image, 'initrd'));
  args.push('-append', 'console=ttyS0 quiet panic=-1 mitigations=off nokaslr random.trust_cpu=on');
  args.push('-serial', `file:${join(control, 'console')}`, '-device', 'virtio-serial-pci');
  for (const [i, fd] of [3, 4].entries()) {
    // Node's pipes are sockets.
    args.push('-chardev', `socket,id=port${i},fd=${fd}`, '-device', `virtserialport,chardev=port${i},nr=${i + 1}`);
  }
  args.push(...share('host', '/', ',readonly=on,multidevs=remap'));
  args.push(...share('tools', join(image, 'tools'), ',readonly=on'), ...share('control', control, ''));
  for (const [i, folder] of shared.entries()) args.push(...share(`shared${i}`, folder, ',multidevs=remap'));
  return args;
}

/** Runs the command in a guest; answers its status. `stdout` and `stderr` are streams that get what it prints. */
export async function runInVm(args, options = {}) {
  const { devices = 2, mtu = 1500, timeoutS = 300, write = [], env = {}, cwd = process.cwd() } = options;
  const {
    stdout = process.stdout,
    stderr = process.stderr,
    cache = join(process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache'), 'multirail-vm'),
  } = options;
  const cpus = options.cpus ?? Math.min(4, Math.max(2, availableParallelism()));
  const image = provideImage(cache, say);
  const control = mkdtempSync(join(tmpdir(), 'multirail-vm-'));
  try {
    const shared = write.map((folder) => resolve(folder));
    for (const folder of shared) mkdirSync(folder, { recursive: true });
    writeFileSync(join(control, 'shared'), shared.map((folder) => `${folder}\n`).join(''));
    const inherited = { HOME: homedir(), PATH: process.env.PATH ?? '', ...env };
    writeFileSync(join(control, 'guest'), guestScript({ devices, mtu, cwd, args, env: inherited }));
    for (const accelerator of accelerators()) {
      const outcome = await boot(qemuArguments(accelerator, image, control, shared, cpus), timeoutS, stdout, stderr);
      if (existsSync(join(control, 'status'))) return Number(readFileSync(join(control, 'status'), 'utf8'));
      if (outcome === 'late') {
        say(`stopped after ${timeoutS} s`);
        return TIMED_OUT;
      }
      // It came up, so another accelerator would do no better.
      if (existsSync(join(control, 'up'))) break;
    }
    say('the guest failed; the end of its console:');
    if (existsSync(join(control, 'console')))
      process.stderr.write(`${readFileSync(join(control, 'console'), 'utf8').split('\n').slice(-30).join('\n')}\n`);
    return GUEST_FAILED;
  } finally {
    rmSync(control, { recursive: true, force: true });
  }
}

function boot(args, timeoutS, stdout, stderr) {
  return new Promise((done) => {
    const child = spawn('qemu-system-x86_64', args, { stdio: ['ignore', 'ignore', 'pipe', 'pipe', 'pipe'] });
    let outcome = 'ended';
    const timer = setTimeout(() => {
      outcome = 'late';
      child.kill('SIGKILL');
    }, timeoutS * 1000);
    const end = () => child.kill('SIGKILL');
    for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, end);
    child.stderr.on('data', (bytes) => stderr.write(bytes));
    child.stdio[3].on('data', (bytes) => stdout.write(bytes));
    child.stdio[4].on('data', (bytes) => stderr.write(bytes));
    child.on('error', (error) => {
      say(error.message);
      outcome = 'error';
    });
    child.on('close', () => {
      clearTimeout(timer);
      for (const signal of ['SIGINT', 'SIGTERM']) process.removeListener(signal, end);
      done(outcome);
    });
  });
}

async function main() {
  const cut = process.argv.indexOf('--');
  const own = process.argv.slice(2, cut < 0 ? undefined : cut);
  const command = cut < 0 ? [] : process.argv.slice(cut + 1);
  const { values } = parseArgs({
    args: own,
    options: {
      devices: { type: 'string' },
      mtu: { type: 'string' },
      timeout: { type: 'string' },
      cpus: { type: 'string' },
      write: { type: 'string', multiple: true },
      env: { type: 'string', multiple: true },
      'build-only': { type: 'boolean' },
      help: { type: 'boolean', short: 'h' },
    },
  });
  const isBuildOnly = values['build-only'] === true;
  if (values.help === true || (command.length === 0 && !isBuildOnly)) {
    console.log(
      readFileSync(import.meta.filename, 'utf8')
        .split('\n')
        .slice(0, 10)
        .map((line) => line.replace(/^\/\/ ?/, ''))
        .join('\n'),
    );
    return values.help === true ? 0 : 2;
  }
  const why = whyNot();
  if (why !== undefined) {
    say(why);
    return CANNOT;
  }
  if (isBuildOnly) {
    await runInVm(['true'], { timeoutS: 120 });
    return 0;
  }
  const number = (text) => (text === undefined ? undefined : Number(text));
  const env = Object.fromEntries((values.env ?? []).map((name) => [name, process.env[name] ?? '']));
  return runInVm(command, {
    devices: number(values.devices),
    mtu: number(values.mtu),
    timeoutS: number(values.timeout),
    cpus: number(values.cpus),
    write: values.write,
    env,
  });
}

if (process.argv[1] === import.meta.filename) process.exitCode = await main();
