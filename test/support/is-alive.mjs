// Whether a process is there and has not ended. A dead one whose parent has not asked for its exit code keeps its number: in a container whose
// first process asks for none, for ever.
import { readFileSync } from 'node:fs';

/** @param {number} pid @returns {boolean} */
export function isAlive(pid) {
  try {
    process.kill(pid, 0);
  } catch {
    return false;
  }
  try {
    // The state stands behind the name, which may have any characters.
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
    return stat.slice(stat.lastIndexOf(')') + 2, stat.lastIndexOf(')') + 3) !== 'Z';
  } catch {
    // It has just ended, or there is no such folder here.
    return process.platform !== 'linux';
  }
}
