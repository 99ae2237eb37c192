// The job of the memory measurement, inside the lab's namespace: the out-of-band server, the measured process (rank 0), and the
// processes that hold its peers. Ends with the measured process. Argument: JSON of MemoryJobSpec.
// Imports the out-of-band server, lab-job (where programs lie), node: modules.
import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { OobServer } from '../../src/launch/oob/server.ts';
import { program } from './job.ts';
import type { MemoryJobSpec, MemoryPeersSpec } from './memory-protocol.ts';

const spec = JSON.parse(process.argv[2]) as MemoryJobSpec;
const size = spec.peers + 1;
const secret = randomBytes(32);
const jobId = randomBytes(8).toString('hex');
const folder = mkdtempSync(join(tmpdir(), `multirail-bench-${process.pid}-`));
const secretFile = join(folder, 'secret');
writeFileSync(secretFile, secret, { mode: 0o600 });
const children: ChildProcess[] = [];
process.on('exit', () => {
  for (const child of children) child.kill('SIGKILL');
  rmSync(folder, { recursive: true, force: true });
});

const server = new OobServer({ jobId, size, secret, knowsProcesses: true, reconnectTimeoutMs: 60_000 });
await server.open();
const env = {
  ...process.env,
  MULTIRAIL_RANK: '0',
  MULTIRAIL_SIZE: String(size),
  MULTIRAIL_JOB_ID: jobId,
  MULTIRAIL_OOB: server.urls.join(','),
  MULTIRAIL_SECRET_FILE: secretFile,
};

function start(name: string, nodeArgs: string[], argument: object): ChildProcess {
  const child = spawn(process.execPath, [...nodeArgs, program(name), JSON.stringify(argument)], {
    env,
    stdio: ['ignore', 'inherit', 'inherit'],
  });
  children.push(child);
  child.on('error', (error) => {
    process.stderr.write(`${name}: ${error.message}\n`);
    process.exit(1);
  });
  return child;
}

for (let host = 0; host < spec.hosts; host++) {
  const from = 1 + Math.floor((host * spec.peers) / spec.hosts);
  const to = Math.floor(((host + 1) * spec.peers) / spec.hosts);
  const child = start('lab-memory-peers', [], { ...spec, from, to } satisfies MemoryPeersSpec);
  child.on('exit', (code, signal) => {
    process.stderr.write(`the process of ranks ${from} to ${to} ended (${code ?? signal})\n`);
    process.exit(1);
  });
}
start('lab-memory-root', ['--expose-gc', '--min-semi-space-size=16'], spec).on('exit', (code) => process.exit(code ?? 1));
