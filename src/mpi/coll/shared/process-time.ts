// Whether a process of this machine still runs. A number alone does not tell, since the kernel gives it to another process later; together
// with the time at which the process started it does (proc(5), field 22 of stat).
import { readFileSync } from 'node:fs';

interface ProcessTime {
  /** A letter; Z and X: it has ended and nobody has asked for its exit code yet. */
  state: string;
  /** In clock ticks since the machine was started. */
  startTime: number;
}

function timeOf(pid: number | 'self'): ProcessTime | undefined {
  let stat: string;
  try {
    stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
  } catch {
    return undefined;
  }
  // The second field is the name of the program in brackets, which may hold anything.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return { state: fields[0], startTime: Number(fields[19]) };
}

/** When this process was started; NaN where the kernel does not tell. */
export const ownStartTime = (): number => timeOf('self')?.startTime ?? Number.NaN;

/** That process has ended. False also where nobody can know. */
export function hasEnded({ pid, startTime }: { pid: number; startTime: number }): boolean {
  if (pid <= 0 || Number.isNaN(startTime)) return false;
  const found = timeOf(pid);
  return found === undefined || found.startTime !== startTime || found.state === 'Z' || found.state === 'X';
}
