// A communicator as the program sees it: that of the library, and what MPI ties to it.
import type { Communicator } from '../mpi/communicator.ts';
import type { Group } from '../mpi/group.ts';
import type { Topology } from './topology.ts';

/** The other side of an intercommunicator. Its messages go by a communicator of both groups. */
export interface Remote {
  readonly group: Group;
  /** Rank in the communicator of both groups of the first of the other one, and of the first of this one. */
  readonly offset: number;
  readonly localOffset: number;
  /** The communicator of this group alone. */
  readonly local: Communicator;
}

export class Comm {
  /** What messages and collectives go by; of an intercommunicator, that of both groups. */
  readonly base: Communicator;
  readonly group: Group;
  readonly remote: Remote | undefined;
  handle = 0;
  name = '';
  errhandler: number;
  topology: Topology | undefined;
  readonly attributes = new Map<number, number>();
  info: ReadonlyMap<string, string> = new Map();
  /** MPI_Comm_free was called. */
  isFreed = false;

  constructor(base: Communicator, errhandler: number, remote?: Remote) {
    this.base = base;
    this.errhandler = errhandler;
    this.remote = remote;
    this.group = remote === undefined ? base.group : remote.local.group;
  }

  get rank(): number {
    return this.group.rank;
  }

  get size(): number {
    return this.group.size;
  }

  /** Ranks that messages can go to. */
  get peers(): number {
    return this.remote === undefined ? this.group.size : this.remote.group.size;
  }
}
