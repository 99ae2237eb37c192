// Whether this machine can run the lab, tried once and not guessed; and which congestion control its kernel has.
import { spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { DEFAULT_CONGESTION_CONTROL } from './plan.ts';
import { LabError } from './run.ts';

// Prints the stage before each try, so that the last word on stdout names what was refused.
const PROBE_SCRIPT = `
namespace=mrlab-$1-0-probe
trap 'ip netns delete $namespace 2>/dev/null' EXIT
set -e
echo 'network namespaces (ip netns add)'; ip netns add $namespace
echo 'veth pairs with chosen indexes'; ip -n $namespace link add name a index 11 type veth peer name b index 1001
echo 'bridges'; ip -n $namespace link add name br0 type bridge
echo 'tc tbf'; tc -n $namespace qdisc replace dev b root handle 1: tbf rate 1000000bit burst 4096 limit 65536
echo 'tc blackhole'; tc -n $namespace qdisc replace dev b root handle 2: blackhole
echo 'tc ingress'; tc -n $namespace qdisc add dev b ingress
echo 'tc bpf filter'; tc -n $namespace filter add dev b ingress bpf direct-action bytecode '1,6 0 0 2'
echo 'random numbers in a tc bpf filter'; tc -n $namespace filter add dev b ingress bpf direct-action bytecode '2,32 0 0 4294963256,6 0 0 0'
echo 'ip link set gso_max_segs'; ip -n $namespace link set dev a gso_max_segs 1
echo 'running a process in a namespace (ip netns exec)'; ip netns exec $namespace test -d /proc/sys/net/ipv4
`;

let answer: { reason: string | undefined } | undefined;

/** Why the lab cannot run here, as a sentence to print beside a skipped test; undefined when it can. Asked once per process. */
export function labUnavailable(): string | undefined {
  answer ??= { reason: findReason() };
  return answer.reason;
}

function findReason(): string | undefined {
  if (process.platform !== 'linux') return 'the link lab needs Linux network namespaces';
  if (process.geteuid?.() !== 0) return 'the link lab needs root (network namespaces)';
  for (const tool of ['ip', 'tc']) {
    if (spawnSync(tool, ['-V'], { stdio: 'ignore' }).error) return `the link lab needs \`${tool}\` (Debian package iproute2)`;
  }
  const probe = spawnSync('sh', ['-c', PROBE_SCRIPT, 'lab-probe', String(process.pid)], { encoding: 'utf8', timeout: 20_000 });
  if (probe.error) return `the link lab could not be tried out: ${probe.error.message}`;
  if (probe.status === 0) return undefined;
  const stage = probe.stdout.trim().split('\n').at(-1) || 'its first command';
  return `the link lab needs ${stage}, refused here: ${probe.stderr.trim().replaceAll('\n', ' ') || `exit ${probe.status}`}`;
}

const settingPath = (file: string): string => `/proc/sys/net/ipv4/${file}`;
const wordsOf = (file: string): string[] => readFileSync(settingPath(file), 'utf8').trim().split(' ');

/**
 * The name that a lab's nodes are set to. A kernel that has it may still keep it to itself: network namespaces may choose only from a
 * list of the whole machine. The name is then added to that list, and stays there. Throws LabError when the kernel has none of that name,
 * or nothing may be added.
 */
export function chooseCongestionControl(asked?: string): string {
  const known = wordsOf('tcp_available_congestion_control');
  const name = asked ?? DEFAULT_CONGESTION_CONTROL;
  const ofTheSystem = wordsOf('tcp_congestion_control')[0];
  if (!known.includes(name)) {
    if (asked === undefined) return ofTheSystem;
    throw new LabError(`this kernel has no congestion control ${name}; it has ${known.join(', ')}; modprobe tcp_${name} may add it`);
  }
  const allowed = wordsOf('tcp_allowed_congestion_control');
  if (allowed.includes(name)) return name;
  try {
    writeFileSync(settingPath('tcp_allowed_congestion_control'), [...allowed, name].join(' '));
  } catch (error) {
    if (asked === undefined) return ofTheSystem;
    throw new LabError(`network namespaces may not choose the congestion control ${name} here: ${(error as Error).message}`);
  }
  return name;
}
