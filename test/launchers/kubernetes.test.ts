// The manifests of examples/kubernetes: each fits together, and ranks that are started with exactly what it gives them find each other. There
// is no cluster here: a network namespace takes the place of a pod, with the host name, the names of the service, and the mounted Secret
// that a pod would have.
import { spawn, spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { parse, parseAllDocuments } from 'yaml';
import { KUBERNETES_PORT } from '../../src/launch/starters/kubernetes.ts';
import { ParamTable } from '../../src/params.ts';

const EXAMPLES = fileURLToPath(new URL('../../examples/', import.meta.url));
const FOLDER = join(EXAMPLES, 'kubernetes');
const DIST = fileURLToPath(new URL('../../dist/index.js', import.meta.url));

interface Manifest {
  kind: string;
  metadata: { name: string };
  // biome-ignore lint/suspicious/noExplicitAny: what a manifest holds is what is looked at
  spec: any;
}
const manifests = parseAllDocuments(readFileSync(join(FOLDER, 'ring.yaml'), 'utf8')).map((document) => document.toJS() as Manifest);
const byKind = (kind: string) => manifests.find((one) => one.kind === kind) as Manifest;
const job = byKind('Job');
const service = byKind('Service');
const pod = job.spec.template.spec;
const [container] = pod.containers;
const env = Object.fromEntries(container.env.map(({ name, value }: { name: string; value: string }) => [name, value])) as Record<
  string,
  string
>;

describe('the manifest', () => {
  test('is an Indexed Job that runs every rank at once', () => {
    expect(job.spec).toMatchObject({
      completionMode: 'Indexed',
      completions: Number(env.MULTIRAIL_SIZE),
      parallelism: Number(env.MULTIRAIL_SIZE),
    });
  });

  test('has a headless service over its pods, by the name that they look for', () => {
    expect(service.spec).toMatchObject({ clusterIP: 'None', publishNotReadyAddresses: true });
    expect(job.spec.template.metadata.labels).toMatchObject(service.spec.selector);
    expect([pod.subdomain, env.MULTIRAIL_SERVICE]).toEqual([service.metadata.name, service.metadata.name]);
    expect(container.ports[0].containerPort).toBe(Number(env.MULTIRAIL_PORT));
  });

  test('mounts the secret that kustomize makes', () => {
    const { resources, secretGenerator } = parse(readFileSync(join(FOLDER, 'kustomization.yaml'), 'utf8'));
    expect(resources).toEqual(['ring.yaml']);
    const volume = pod.volumes.find(({ name }: { name: string }) => name === container.volumeMounts[0].name);
    expect(secretGenerator).toEqual([{ name: volume.secret.secretName, files: ['secret'] }]);
    expect(env.MULTIRAIL_SECRET_FILE).toBe(join(container.volumeMounts[0].mountPath, 'secret'));
  });
});

describe('the manifest of a job whose pods may die', () => {
  const all = parseAllDocuments(readFileSync(join(FOLDER, 'fault-tolerant.yaml'), 'utf8')).map((document) => document.toJS() as Manifest);
  const named = (kind: string, name: string) => all.find((one) => one.kind === kind && one.metadata.name === name) as Manifest;
  const served = named('Job', 'heat-rendezvous').spec.template;
  const ranks = named('Job', 'heat');
  const variables = Object.fromEntries(
    ranks.spec.template.spec.containers[0].env.map(({ name, value }: { name: string; value: string }) => [name, value]),
  ) as Record<string, string>;

  test('replaces a failed pod under its index, and never runs two of one index by itself', () => {
    expect(ranks.spec).toMatchObject({ completionMode: 'Indexed', podReplacementPolicy: 'Failed' });
    expect(ranks.spec.backoffLimitPerIndex).toBeGreaterThan(0);
    expect(ranks.spec.backoffLimit).toBeUndefined();
    expect(ranks.spec.template.spec.restartPolicy).toBe('Never');
    for (const number of [ranks.spec.completions, ranks.spec.parallelism]) expect(number).toBe(Number(variables.MULTIRAIL_SIZE));
  });

  test('has the meeting in a pod of its own, which is found by its service, and for as many processes', () => {
    const [{ command, ports }] = served.spec.containers;
    expect(command.join(' ')).toBe(`npx multirail rendezvous -n ${variables.MULTIRAIL_SIZE} --mca ft on`);
    const [service] = all.filter(({ kind }) => kind === 'Service');
    expect(served.metadata.labels).toMatchObject(service.spec.selector);
    expect(variables.MULTIRAIL_RENDEZVOUS).toBe(`${service.metadata.name}:${service.spec.ports[0].port}`);
    expect([service.spec.ports[0].port, ports[0].containerPort]).toEqual([KUBERNETES_PORT, KUBERNETES_PORT]);
  });

  test('gives its ranks parameters that there are, and one secret to all', () => {
    const params = new ParamTable({}, variables);
    expect([params.bool('ft'), params.bool('oob_served'), params.int('ft_respawn')]).toEqual([
      true,
      true,
      ranks.spec.completions * ranks.spec.backoffLimitPerIndex,
    ]);
    for (const { spec } of [served, ranks.spec.template]) {
      const [{ env: own, volumeMounts }] = spec.containers;
      const file = own.find(({ name }: { name: string }) => name === 'MULTIRAIL_SECRET_FILE').value;
      expect(file).toBe(join(volumeMounts[0].mountPath, 'secret'));
      expect(spec.volumes[0]).toMatchObject({ name: volumeMounts[0].name, secret: { secretName: 'heat-secret' } });
    }
  });
});

const ip = (...args: string[]) => spawnSync('ip', args, { encoding: 'utf8' });

test('ranks with the environment of its pods find each other', async ({ skip }) => {
  const why =
    process.getuid?.() !== 0 || ip('-V').status !== 0
      ? 'needs root and ip'
      : existsSync(DIST)
        ? undefined
        : 'the package is not built (npm run build)';
  if (why !== undefined) {
    console.log(`skipped: ranks of the Kubernetes manifest: ${why}`);
    skip();
  }
  const size = job.spec.completions as number;
  const folder = mkdtempSync(join(tmpdir(), 'joining-pods-'));
  const bridge = `kb${process.pid}`;
  const pods = Array.from({ length: size }, (_, index) => ({ index, netns: `k${process.pid}p${index}`, address: `10.214.9.${index + 1}` }));
  const must = (...args: string[]) => expect(ip(...args), args.join(' ')).toMatchObject({ status: 0 });
  try {
    writeFileSync(join(folder, 'secret'), randomBytes(32));
    must('link', 'add', bridge, 'type', 'bridge');
    must('link', 'set', bridge, 'up');
    const names = pods.map(({ index, address }) => `${address} ${job.metadata.name}-${index}.${service.metadata.name}\n`).join('');
    for (const { netns, address } of pods) {
      must('netns', 'add', netns);
      must('link', 'add', `v${netns}`, 'type', 'veth', 'peer', 'name', 'eth0', 'netns', netns);
      must('link', 'set', `v${netns}`, 'master', bridge, 'up');
      must('-n', netns, 'addr', 'add', `${address}/24`, 'dev', 'eth0');
      must('-n', netns, 'link', 'set', 'eth0', 'up');
      must('-n', netns, 'link', 'set', 'lo', 'up');
      // What `ip netns exec` shows as /etc/hosts: the names that the cluster's DNS would know.
      mkdirSync(`/etc/netns/${netns}`, { recursive: true });
      writeFileSync(`/etc/netns/${netns}/hosts`, `127.0.0.1 localhost\n${names}`);
    }
    const { mountPath } = container.volumeMounts[0];
    const inPod = 'hostname "$HOSTNAME"; mount -t tmpfs run "$(dirname "$1")"; mkdir "$1"; cp "$2" "$1/secret"; shift 2; exec "$@"';
    const [node, program] = container.command as string[];
    expect(node).toBe('node');
    const ranks = pods.map(({ index, netns }) => {
      const podEnv = { ...env, JOB_COMPLETION_INDEX: String(index), HOSTNAME: `${job.metadata.name}-${index}` };
      const set = Object.entries({ PATH: process.env.PATH ?? '', ...podEnv }).map(([name, value]) => `${name}=${value}`);
      const command = ['netns', 'exec', netns, 'unshare', '--mount', '--uts', 'env', '-i', ...set, 'sh', '-ec', inPod, 'sh'];
      const child = spawn('ip', [...command, mountPath, join(folder, 'secret'), process.execPath, join(EXAMPLES, program)], {
        stdio: ['ignore', 'pipe', 'pipe'],
        timeout: 60_000,
      });
      let output = '';
      for (const stream of [child.stdout, child.stderr])
        stream.setEncoding('utf8').on('data', (text) => {
          output += text;
        });
      return new Promise<{ code: number | null; output: string }>((resolve) => child.on('close', (code) => resolve({ code, output })));
    });
    const ends = await Promise.all(ranks);
    expect(ends).toEqual([
      { code: 0, output: `the token went through ${size} ranks and is worth 6\n` },
      ...Array.from({ length: size - 1 }, () => ({ code: 0, output: '' })),
    ]);
  } finally {
    for (const { netns } of pods) {
      ip('netns', 'del', netns);
      rmSync(`/etc/netns/${netns}`, { recursive: true, force: true });
    }
    ip('link', 'del', bridge);
    rmSync(folder, { recursive: true, force: true });
  }
});
