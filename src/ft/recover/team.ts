// Helpers that repeat with a successor what its predecessor did: the side of the successor, and what a helper is given as its job.
import { MultirailError } from '../../errors.ts';
import type { Communicator } from '../../mpi/communicator.ts';
import type { RecoverySeries } from '../../mpi/ft/recovery-series.ts';
import type { Request } from '../../mpi/request.ts';

/** On the communicator of a team: what a helper begins with, its image, and its word that it waits for work. */
const TEAM_TAG = { HEADER: 1, MEMBERS: 2, IMAGE: 3, READY: 4 } as const;

/** What a successor tells its helpers first. */
export interface TeamHeader {
  /** Of the dead rank. */
  readonly rank: number;
  /** Process numbers by rank: the communicator of the program. */
  readonly members: readonly number[];
  readonly step: number;
  /** −1: there is no image, and all begin from the beginning. */
  readonly bytes: number;
}

/** Sends a helper what it begins with. */
function brief(comm: Communicator, helper: number, { rank, members, step, bytes }: TeamHeader, image: Uint8Array | undefined): void {
  comm.isend(Float64Array.of(rank, members.length, step, bytes), helper, TEAM_TAG.HEADER);
  comm.isend(Float64Array.from(members), helper, TEAM_TAG.MEMBERS);
  if (image !== undefined) comm.isend(image, helper, TEAM_TAG.IMAGE);
}

/** At a helper. */
export async function briefing(comm: Communicator): Promise<{ readonly header: TeamHeader; readonly image: Uint8Array | undefined }> {
  const words = new Float64Array(4);
  await comm.recv(words, 0, TEAM_TAG.HEADER);
  const [rank, size, step, bytes] = words;
  const members = new Float64Array(size);
  await comm.recv(members, 0, TEAM_TAG.MEMBERS);
  const image = bytes < 0 ? undefined : new Uint8Array(bytes);
  if (image !== undefined) await comm.recv(image, 0, TEAM_TAG.IMAGE);
  return { header: { rank, members: [...members], step, bytes }, image };
}

/** A helper waits for work from now on. */
export function sayReady(comm: Communicator): void {
  comm.isend(new Uint8Array(1), 0, TEAM_TAG.READY);
}

/** Those that stand by have said by then whether they help: a process that is stopped is not waited for. */
const HELPERS_WAIT_MS = 1000;

/**
 * The team of a successor, until it has caught up. The successor repeats its first steps alone: helpers are asked while its program runs, and get the
 * image and call the program before they can do anything. One that is stopped never says that it is ready.
 */
export class Team {
  private comm: Communicator | undefined = undefined;
  /** From each helper, its word that it is ready. */
  private readonly ready: Request[] = [];
  private isOver = false;
  private readonly series: RecoverySeries;
  private readonly callOff: () => void;

  /** `own`: a communicator in which this process is that rank. */
  constructor(own: Communicator, wanted: number, header: TeamHeader, image: Uint8Array | undefined) {
    this.series = own.recoverySeries('run');
    const id = this.series.newId();
    this.callOff = this.series.recruit(wanted, HELPERS_WAIT_MS, ({ coming, begin }) => {
      this.isOver = coming.length === 0;
      if (this.isOver) return;
      const members = [header.members[header.rank], ...coming];
      this.comm = own.enterAs('team', id, members);
      begin(id, members);
      this.begin(this.comm, header, image);
    });
    this.series.close();
  }

  private begin(comm: Communicator, header: TeamHeader, image: Uint8Array | undefined): void {
    for (let helper = 1; helper < comm.size; helper++) {
      // Whoever is gone by now is told by the first call of the program.
      try {
        this.ready.push(comm.irecv(new Uint8Array(1), helper, TEAM_TAG.READY));
        brief(comm, helper, header, image);
      } catch {
        return;
      }
    }
  }

  /** Undefined until all helpers are ready, and when it is over: nobody comes, one has died, was called in or has let go, or the successor has caught up. */
  get current(): Communicator | undefined {
    if (this.isOver) return undefined;
    // What a successor repeats is here already: a program of blocking calls may wait for nothing, and so look at no rail.
    if (!this.isReady) this.series.look();
    const { comm } = this;
    if (comm !== undefined && (comm.isRevoked || comm.getFailed().size > 0)) this.end();
    return this.isOver || !this.isReady ? undefined : comm;
  }

  private get isReady(): boolean {
    return this.comm !== undefined && this.ready.every(({ state }) => state === 'DONE');
  }

  /** All helpers let go. */
  end(): void {
    if (this.isOver) return;
    this.isOver = true;
    if (this.comm === undefined) this.callOff();
    else dissolve(this.comm);
  }

  /** The program of the successor is over. */
  close(): void {
    this.end();
    if (this.comm !== undefined) free(this.comm);
  }
}

function enterAlone(comm: Communicator): Communicator {
  const series = comm.recoverySeries('run');
  const id = series.newId();
  series.close();
  return comm.enterAs('alone', id, [comm.group.worldRanks[comm.rank]]);
}

/** The communicator of these processes, as a helper has it in place of one of them: every call on it ends with ERR_REVOKED. */
export function enterRevoked(comm: Communicator, rank: number, members: readonly number[]): Communicator {
  const series = comm.recoverySeries('run');
  const id = series.newId();
  const own = comm.group.worldRanks[comm.rank];
  const entered = comm.enterAs(
    'job',
    id,
    members.map((number, at) => (at === rank ? own : number)),
  );
  series.revokeHere(id);
  series.close();
  return entered;
}

/** Whatever waits on it ends with ERR_REVOKED, and so do later calls: a program may still have it in its hands. */
export function dissolve(comm: Communicator): void {
  try {
    comm.revokeSync();
  } catch {
    // This process leaves the job.
  }
}

/** The program has let go of it. */
export function free(comm: Communicator): void {
  comm.free().catch(() => undefined);
}

/** What onHelp() throws at a helper: its program ends there. */
export class HelpBegins extends MultirailError {
  constructor(rank: number) {
    super('ERR_REVOKED', `a process that stands by helps the successor of rank ${rank}: let the error out of the program`, { rank });
  }
}

/** Parts of a job that have to do with helpers. */
export class TeamOfJob {
  private readonly ownComm: Communicator;
  private readonly ownTeam: Team | undefined;
  private alone: Communicator | undefined;

  /** @internal */
  constructor(comm: Communicator, team: Team | undefined) {
    this.ownComm = comm;
    this.ownTeam = team;
  }

  /**
   * Under asynchronous recovery with `helpers`: the communicator of this successor, its rank 0, and those that help it, from when all of them wait for
   * work until it has caught up. In all other cases, and from the moment on at which a helper has died or has taken a place itself, one of this process
   * alone. A call on it that waits then ends with ERR_PROC_FAILED or ERR_REVOKED: the program catches it, sees that `team.size` is 1, and does the work
   * of the step by itself.
   */
  get team(): Communicator {
    const { current } = this.ownTeam ?? {};
    if (current !== undefined) return current;
    this.alone ??= enterAlone(this.ownComm);
    return this.alone;
  }

  /**
   * Says what a process does that helps this rank's successor: called with the communicator of the team, in a process that stood by, until the
   * successor has caught up. Then what it waits for ends with ERR_REVOKED or ERR_PROC_FAILED, which it lets out. Call it behind protect() and before the
   * first message: a helper is called with `job.comm` of the dead rank's number and the state of the save, and this call ends its program there,
   * by an error that it lets out. At all others it does nothing.
   *
   * @param help May be a plain function that uses blocking calls only.
   * @throws ERR_ARG: it is no function.
   */
  onHelp(help: (team: Communicator) => unknown): void {
    checkHelp(help);
  }

  /** @internal */
  protected closeTeam(): void {
    this.ownTeam?.close();
    if (this.alone !== undefined) free(this.alone);
    this.alone = undefined;
  }
}

export function checkHelp(help: unknown): void {
  if (typeof help !== 'function') throw new MultirailError('ERR_ARG', `help of onHelp(): ${typeof help}, expected a function`);
}
