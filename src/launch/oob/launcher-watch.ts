// Whether a rank's launcher process is alive, dead, or unknown, read from the process table.

export type LauncherKnowledge = 'alive' | 'dead' | 'unknown';

export interface ProcessTable {
  /** Parent of this process. */
  ppid(): number;
  /** True when the process exists. */
  exists(pid: number): boolean;
}

export const systemProcessTable: ProcessTable = {
  ppid: () => process.ppid,
  exists: (pid) => {
    try {
      process.kill(pid, 0);
      return true;
    } catch (error) {
      return (error as NodeJS.ErrnoException).code === 'EPERM';
    }
  },
};

/**
 * Two ways to know. A direct child sees its parent change, which no reuse of process ids can fake. Behind a wrapper that does
 * not exec, the launcher's id is looked up; if it is not visible at the start (another process namespace), nothing is known.
 */
export class LauncherWatch {
  private readonly launcherPid: number;
  private readonly table: ProcessTable;
  private readonly mode: 'parent' | 'lookup' | 'none';

  constructor(launcherPid: number | undefined, table: ProcessTable = systemProcessTable) {
    this.launcherPid = launcherPid ?? 0;
    this.table = table;
    if (launcherPid === undefined) this.mode = 'none';
    else if (table.ppid() === launcherPid) this.mode = 'parent';
    else this.mode = table.exists(launcherPid) ? 'lookup' : 'none';
  }

  knowledge(): LauncherKnowledge {
    switch (this.mode) {
      case 'parent':
        return this.table.ppid() === this.launcherPid ? 'alive' : 'dead';
      case 'lookup':
        return this.table.exists(this.launcherPid) ? 'alive' : 'dead';
      case 'none':
        return 'unknown';
    }
  }
}
