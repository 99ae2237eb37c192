// Hosts that are network namespaces of this machine, on a bridge, which netns-agent.sh reaches by their names. Needs root and ip.
import { spawnSync } from 'node:child_process';
import process from 'node:process';
import { fileURLToPath } from 'node:url';

const AGENT = fileURLToPath(new URL('./netns-agent.sh', import.meta.url));

const ip = (...args) => spawnSync('ip', args, { encoding: 'utf8' });

/** Why there can be no such hosts here; undefined when there can. */
export function netnsMissing() {
  return process.getuid?.() === 0 && ip('-V').status === 0 ? undefined : 'needs root and ip';
}

/** Makes them: `a` and `b` unless others are named. `subnet` is the first three numbers of their addresses; the bridge has .1, and is how this namespace reaches them. */
export function makeHosts(subnet, hosts = ['a', 'b']) {
  const prefix = `mr${process.pid}`;
  const bridge = `br${process.pid}`;
  const remove = () => {
    for (const host of hosts) ip('netns', 'del', `${prefix}${host}`);
    ip('link', 'del', bridge);
  };
  const steps = [
    ['link', 'add', bridge, 'type', 'bridge'],
    ['addr', 'add', `${subnet}.1/24`, 'dev', bridge],
    ['link', 'set', bridge, 'up'],
    ...hosts.flatMap((host, i) => {
      const name = `${prefix}${host}`;
      return [
        ['netns', 'add', name],
        ['link', 'add', `v${name}`, 'type', 'veth', 'peer', 'name', 'eth0', 'netns', name],
        ['link', 'set', `v${name}`, 'master', bridge],
        ['link', 'set', `v${name}`, 'up'],
        ['-n', name, 'addr', 'add', `${subnet}.${i + 2}/24`, 'dev', 'eth0'],
        ['-n', name, 'link', 'set', 'eth0', 'up'],
        ['-n', name, 'link', 'set', 'lo', 'up'],
      ];
    }),
  ];
  for (const step of steps) {
    const { status, stderr } = ip(...step);
    if (status === 0) continue;
    remove();
    throw new Error(`ip ${step.join(' ')}: ${stderr}`);
  }
  const tc = (host, ...words) => {
    const { status, stderr } = spawnSync('tc', ['-n', `${prefix}${host}`, ...words], { encoding: 'utf8' });
    if (status !== 0) throw new Error(`tc ${words.join(' ')}: ${stderr}`);
  };
  /** Whoever runs there runs on, and nothing can be started there any more. */
  const removeHost = (host) => void ip('netns', 'del', `${prefix}${host}`);
  return { agent: `${AGENT} ${prefix}`, subnet: `${subnet}.0/24`, tc, removeHost, remove };
}
