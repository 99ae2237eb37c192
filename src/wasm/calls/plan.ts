// What a collective of a program comes to: a call of the library, and what is done before and after it.
import type { Communicator } from '../../mpi/communicator.ts';
import type { Comm } from '../comm.ts';

/** A collective that can be run, once or again and again. */
export interface Plan {
  /** The method of the library, without its ending. */
  readonly name: string;
  readonly args: readonly unknown[];
  readonly before?: (() => void) | undefined;
  readonly after?: (() => void) | undefined;
  /** The communicator that it runs on, where that is not the one of the call. */
  readonly on?: Communicator;
}

/** Makes the plan of a call from its arguments, those in front of the communicator. */
export type Planner = (comm: Comm, args: readonly number[]) => Plan;
