// The commands between the user and a launcher: `npx multirail run` is npm, perhaps a shell, and then the launcher. A signal that ends npm
// leaves the launcher behind, which goes on with its job and says how it can be reached now.
import { readFileSync } from 'node:fs';

const LOOK_MS = 500;
/** npm and its shell. */
const GENERATIONS = 2;

/** Parent of a process; undefined when it is gone, or nothing is known of it. */
function parentOf(pid: number): number | undefined {
  try {
    // The name in parentheses may hold anything: the fields are counted from behind it.
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
    const parent = Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]);
    return parent > 1 ? parent : undefined;
  } catch {
    return undefined;
  }
}

/** This process's parent, and that one's, as far as they are to be seen. */
function ancestors(): number[] {
  const found: number[] = [];
  for (let pid: number | undefined = process.ppid; pid !== undefined && pid > 1 && found.length < GENERATIONS; pid = parentOf(pid)) {
    found.push(pid);
  }
  return found;
}

/**
 * Calls back once when npm, which has started this process (npx, npm exec, npm run), ends before it. A shell that ends is nothing
 * unusual: whoever starts a job by nohup wants that. Returns the function that stops this.
 */
export function watchNpm(env: Readonly<Record<string, string | undefined>>, onGone: () => void): () => void {
  if (env.npm_command === undefined && env.npm_lifecycle_event === undefined) return () => undefined;
  const before = ancestors().join();
  const timer = setInterval(() => {
    if (ancestors().join() === before) return;
    clearInterval(timer);
    onGone();
  }, LOOK_MS);
  timer.unref();
  return () => clearInterval(timer);
}
