// Worlds whose ranks die: the parts that ranks play in a case, and runtimes in one process that play them. A rank that dies there stops in the
// middle of everything: its transports are closed and its engine never runs again, as if its process had ended.
import { setTimeout as sleep } from 'node:timers/promises';
import type { BtlComponent } from '../../src/btl/btl.ts';
import type { Communicator } from '../../src/mpi/communicator.ts';
import type { FaultTolerance } from '../../src/mpi/ft/fault-tolerance.ts';
import type { Runtime } from '../../src/mpi/runtime.ts';
import { ParamTable } from '../../src/params.ts';
import type { Engine } from '../../src/progress/engine.ts';
import { LOOPBACK_PARAMS, type MemoryOobHub, makeRuntimes, SMALL_PARAMS } from './p2p-worlds.ts';

/** One rank in a case. Where ranks are processes, each has its own. */
export interface FtPart {
  readonly mpi: Runtime;
  readonly world: Communicator;
  readonly rank: number;
  /** This rank dies: once all that it has sent is delivered, or now, in the midst of it. */
  die(when?: 'now'): Promise<never>;
  sleep(ms: number): Promise<void>;
}

export interface FtCase {
  name: string;
  ranks: number;
  /** So many further processes stand by. One that is called in plays its part, too. */
  spares?: number;
  /** Set: blocking calls need a process for each rank. */
  processes?: true;
  /** Process numbers of those that die by plan; the others must come to the end of their part, if they have one. */
  dying: readonly number[];
  params?: Readonly<Record<string, string>>;
  run(part: FtPart): Promise<void>;
}

/** What die() throws. */
export const DIED = Symbol('died');

interface Insides {
  engine: Engine;
  proc: { ft: FaultTolerance | undefined };
}

/** How the others learn of a death: the launcher tells all of them, or one, whose word is passed on. */
export type Notices = 'all' | 'one';

/** Plays a case by ranks in this process over these transports. Throws what the first rank throws that fails. */
export async function playFtCase(one: FtCase, components: readonly BtlComponent[], notices: Notices): Promise<void> {
  const params = new ParamTable({ ...SMALL_PARAMS, ...LOOPBACK_PARAMS, ft: 'on', ft_spares: String(one.spares ?? 0), ...one.params });
  const { runtimes, hub, standbys } = await makeRuntimes(one.ranks, params, () => components);
  const died = new Set<number>();
  const play = async (mpi: Runtime): Promise<void> => {
    const { rank, process: number } = mpi;
    const die = async (when?: 'now'): Promise<never> => {
      while (when !== 'now' && mpi.undelivered().length > 0) await sleep(1);
      died.add(number);
      await kill(mpi);
      tell(hub, number, runtimes, died, notices);
      throw DIED;
    };
    try {
      await one.run({ mpi, world: mpi.world, rank, die, sleep: (ms) => sleep(ms) });
      if (one.dying.includes(number)) throw new Error(`process ${number} was to die, and has not`);
      await mpi.finalize({ timeoutMs: 10_000 });
    } catch (error) {
      if (error !== DIED) throw new Error(`process ${number}: ${(error as Error).message}`, { cause: error });
    }
  };
  // One that nobody calls in has to leave by itself.
  const isOver = standbys.map(({ calledIn, closed }) => {
    const called = calledIn.then((mpi) => {
      runtimes.push(mpi);
      return play(mpi);
    });
    return Promise.race([called, closed.then(() => undefined)]);
  });
  const ends = await Promise.allSettled([...runtimes.map(play), ...isOver]);
  const failed = ends.find((end) => end.status === 'rejected');
  if (failed === undefined) return;
  for (const mpi of runtimes) await kill(mpi);
  throw failed.reason;
}

async function kill(mpi: Runtime): Promise<void> {
  const { engine, proc } = mpi as unknown as Insides;
  proc.ft?.stop();
  await engine.close();
  (mpi as unknown as { stay?: { end(): void } }).stay?.end();
}

function tell(hub: MemoryOobHub, rank: number, runtimes: readonly Runtime[], died: ReadonlySet<number>, notices: Notices): void {
  if (notices === 'all') return hub.exited(rank, { signal: 'SIGKILL' });
  const listener = runtimes.find((mpi) => !died.has(mpi.process));
  if (listener !== undefined) hub.exitedFor(listener.process, rank);
}
