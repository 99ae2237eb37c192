// A process that helps a successor: its program is called with the state of the save until it says what it helps with, and that runs until the
// successor has caught up. Then the process stands by again.
import type { MultirailError } from '../../errors.ts';
import type { Communicator } from '../../mpi/communicator.ts';
import type { StandbyDuty } from '../../mpi/ft/standby.ts';
import type { Runtime } from '../../mpi/runtime.ts';
import { crc32c } from '../../native/crc32c.ts';
import { decodeImage } from '../image/decode.ts';
import { isFailure } from './exchange.ts';
import type { FtJob } from './job.ts';
import { Registry, type ValueAccessors } from './registry.ts';
import { briefing, checkHelp, dissolve, enterRevoked, free, HelpBegins, sayReady, type TeamHeader } from './team.ts';

type Image = ReturnType<typeof decodeImage>;

/** What the program of a helper is given: all of a job that comes before onHelp(). */
class HelperJob {
  readonly comm: Communicator;
  readonly signal: AbortSignal;
  readonly recovery = undefined;
  readonly replaying = true;
  readonly everySteps: readonly number[] = [];
  readonly total = { failures: 0, inPlace: 0, lostSteps: 0 };
  readonly step: number;
  readonly team: Communicator;
  help: ((team: Communicator) => unknown) | undefined;
  private readonly registry: Registry;
  private readonly rank: number;

  constructor(team: Communicator, { rank, members, step }: TeamHeader, image: Image | undefined, signal: AbortSignal) {
    this.comm = enterRevoked(team, rank, members);
    this.team = team;
    this.signal = signal;
    this.step = step;
    this.rank = rank;
    this.registry = new Registry(rank, image?.sections);
  }

  protect(name: string, view: ArrayBufferView): void {
    this.registry.protect(name, view);
  }

  protectValue<V>(name: string, accessors: ValueAccessors<V>): void {
    this.registry.protectValue(name, accessors);
  }

  once<V>(name: string, make: () => V): V {
    return this.registry.once(name, make);
  }

  onHelp(help: (team: Communicator) => unknown): never {
    checkHelp(help);
    this.help = help;
    throw this.over();
  }

  next(): Promise<never> {
    return Promise.reject(this.over());
  }

  nextSync(): never {
    throw this.over();
  }

  checkpoint(): Promise<never> {
    return Promise.reject(this.over());
  }

  checkpointSync(): never {
    throw this.over();
  }

  validate(): Promise<never> {
    return Promise.reject(this.over());
  }

  private over(): MultirailError {
    return new HelpBegins(this.rank);
  }
}

/** Helps until the team is over. Errors of the program's own come out of it. */
export async function helpOnce(mpi: Runtime, body: (job: FtJob) => unknown): Promise<void> {
  const team = mpi.world;
  const duty = mpi.duty as StandbyDuty;
  const controller = new AbortController();
  duty.onPlaced = () => {
    controller.abort();
    dissolve(team);
  };
  try {
    const { header, image } = await briefing(team);
    const job = new HelperJob(team, header, image && decodeImage(image, crc32c), controller.signal);
    try {
      await body(job as unknown as FtJob);
    } catch (error) {
      if (!isFailure(error)) throw error;
    } finally {
      free(job.comm);
    }
    if (job.help !== undefined) {
      sayReady(team);
      await job.help(team);
    }
  } catch (error) {
    if (!isFailure(error)) throw error;
  } finally {
    duty.onPlaced = undefined;
    controller.abort();
    dissolve(team);
    free(team);
  }
  await duty.next();
}
