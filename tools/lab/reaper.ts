// What makes a lab leave nothing behind. One shell script removes namespaces with everything that runs in them. It is started together with
// the lab, not at its end: it waits on a pipe that the lab's process holds, so it runs when the lab is destroyed, and also when the process
// throws, exits, is interrupted or killed -9.
import { type ChildProcess, spawn } from 'node:child_process';
import { readdirSync } from 'node:fs';
import type { Socket } from 'node:net';
import { LabError, run, waitUntil } from './run.ts';

const NAMESPACE_DIR = '/run/netns';
const NAME_PREFIX = 'mrlab';
const REAP_TIMEOUT_MS = 20_000;

// A process may fork while it is being killed, hence the rounds. Only processes inside the lab's own namespaces are touched.
const REAP_SCRIPT = `
trap '' INT TERM HUP PIPE
if [ "$1" = wait ]; then read -r ignored; fi
shift
for namespace in "$@"; do
  [ -e "${NAMESPACE_DIR}/$namespace" ] || continue
  round=0
  while [ $round -lt 20 ]; do
    pids=$(ip netns pids "$namespace" 2>/dev/null)
    [ -n "$pids" ] || break
    kill -9 $pids 2>/dev/null
    round=$((round + 1))
    [ $round -lt 3 ] || sleep 0.05
  done
  ip netns delete "$namespace" 2>/dev/null
done
`;

/** Names of all namespaces that any lab on this machine has now. */
export function labNamespaces(): string[] {
  try {
    return readdirSync(NAMESPACE_DIR).filter((name) => name.startsWith(`${NAME_PREFIX}-`));
  } catch {
    return [];
  }
}

let labCounter = 0;

/** A name for the next lab of this process: prefix, process id, a counter. The id is how a sweep knows a dead run. */
export function nextLabName(): string {
  const taken = labNamespaces();
  for (;;) {
    const name = `${NAME_PREFIX}-${process.pid}-${++labCounter}`;
    if (!taken.some((namespace) => namespace.startsWith(`${name}-`))) return name;
  }
}

/** Removes the labs of processes that no longer exist, and returns the namespaces removed. */
export async function sweepStaleLabs(): Promise<string[]> {
  const stale = labNamespaces().filter((name) => {
    const pid = /^[^-]+-(\d+)-/.exec(name);
    return pid !== null && !processExists(Number(pid[1]));
  });
  if (stale.length > 0) await reapNow(stale);
  return stale;
}

function processExists(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}

async function reapNow(namespaces: readonly string[]): Promise<void> {
  await run(['sh', '-c', REAP_SCRIPT, 'lab-reaper', 'now', ...namespaces], { timeoutMs: REAP_TIMEOUT_MS });
}

/** Stands behind one lab and removes its namespaces, whichever way the lab ends. */
export class Reaper {
  private readonly namespaces: readonly string[];
  private readonly child: ChildProcess;
  private ended = false;

  constructor(namespaces: readonly string[]) {
    this.namespaces = namespaces;
    // A session of its own: an interrupt from the terminal goes to the whole process group. PATH and nothing else inherited.
    this.child = spawn('sh', ['-c', REAP_SCRIPT, 'lab-reaper', 'wait', ...namespaces], {
      stdio: ['pipe', 'ignore', 'ignore'],
      detached: true,
      cwd: '/',
      env: { PATH: process.env.PATH },
    });
    this.child.on('error', () => {
      this.ended = true;
    });
    this.child.on('exit', () => {
      this.ended = true;
    });
    this.child.stdin?.on('error', () => {});
    // Neither the process nor the pipe keeps a finished program from exiting: that exit is what the reaper waits for.
    this.child.unref();
    (this.child.stdin as Socket | null)?.unref();
  }

  /** Removes the namespaces now. Throws when one of them is still there afterwards. */
  async reap(): Promise<void> {
    this.child.stdin?.end();
    await waitUntil(`the reaper of ${this.namespaces[0]} to end`, () => this.ended, REAP_TIMEOUT_MS);
    // Should somebody have killed the reaper, its work is done here.
    if (this.left().length > 0) await reapNow(this.left());
    const left = this.left();
    if (left.length > 0) throw new LabError(`these namespaces could not be removed: ${left.join(', ')}`);
  }

  private left(): string[] {
    const present = labNamespaces();
    return this.namespaces.filter((name) => present.includes(name));
  }
}
