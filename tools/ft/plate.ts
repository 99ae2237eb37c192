// The heated plate of the campaigns, as one rank sees it: a strip of it, whose edges its neighbours have. A successor may be helped with a step.
import { createHash } from 'node:crypto';
import type { FtJob } from '../../src/ft/recover/job.ts';
import type { Communicator } from '../../src/mpi/communicator.ts';
import { CELLS, ownRows, part, relax, SWEEPS, strip } from './heat-strip.ts';

const digestOf = (plate: Float64Array): string => createHash('sha256').update(plate).digest('hex');

/** Of a plate that nobody disturbs, in one process. */
export function undisturbedDigest(rows: number, steps: number): string {
  const now = strip(rows);
  const scratch = strip(rows);
  for (let step = 0; step < steps; step++) relax(now, scratch, false, false);
  return digestOf(ownRows(now));
}

function processorUs(): number {
  const { user, system } = process.cpuUsage();
  return user + system;
}

interface SharedStep {
  readonly own: Float64Array;
  readonly rows: readonly Float64Array[];
}

export class Plate {
  readonly now: Float64Array;
  private readonly stepped: ((processorSeconds: number) => void) | undefined;
  private readonly scratch: Float64Array;
  private readonly comm: Communicator;
  private readonly rows: number;
  private shared: SharedStep | undefined = undefined;

  /** `rows` of each rank, at least SWEEPS. `stepped` is called after each step that is no repetition, with the processor time of its sweeps. */
  constructor(comm: Communicator, rows: number, stepped?: (processorSeconds: number) => void) {
    this.stepped = stepped;
    this.comm = comm;
    this.rows = rows;
    this.now = strip(rows);
    this.scratch = strip(rows);
  }

  get own(): Float64Array {
    return ownRows(this.now);
  }

  /** Rows of one of a team, among those of a strip: from, and to before. */
  private shareOf({ size }: Communicator, rank: number): [from: number, to: number] {
    return [Math.floor((rank * this.rows) / size), Math.floor(((rank + 1) * this.rows) / size)];
  }

  /** Strips for the rows of one of a team, and for what relax() needs beside them. */
  private spacesOf(team: Communicator): [now: Float64Array, scratch: Float64Array] {
    const [from, to] = this.shareOf(team, team.rank);
    return [strip(to - from), strip(to - from)];
  }

  /** What a helper does: rows come with those around them, and its own go back. */
  async help(team: Communicator): Promise<void> {
    const { rank, size } = this.comm;
    const [now, scratch] = this.spacesOf(team);
    for (;;) {
      await team.recv(now, 0, 0);
      relax(now, scratch, true, team.rank < team.size - 1 || rank < size - 1);
      await team.send(ownRows(now), 0, 0);
    }
  }

  /** Its part of the strip, which it computes, and the new rows of all of the team. */
  private sharedBy({ size }: Communicator, shares: readonly (readonly [from: number, to: number])[]): SharedStep {
    if (this.shared?.rows.length !== size) {
      const rows = shares.map(([from, to]) => new Float64Array((to - from) * CELLS));
      this.shared = { own: strip(shares[0][1]), rows };
    }
    return this.shared;
  }

  /** A step of a successor with those that help it; the strip is as it was until all have done their part. */
  private async relaxWith(team: Communicator, hasAbove: boolean): Promise<void> {
    const { now } = this;
    const shares = Array.from({ length: team.size }, (_, rank) => this.shareOf(team, rank));
    const [, ...helpers] = shares.keys();
    // While this process computes nothing leaves it: rows are at the helpers before.
    await Promise.all(helpers.map((helper) => team.send(part(now, shares[helper][0], shares[helper][1] + 2 * SWEEPS), helper, 0)));
    const { own, rows } = this.sharedBy(team, shares);
    const come = helpers.map((helper) => team.recv(rows[helper], helper, 0));
    own.set(part(now, 0, shares[0][1] + 2 * SWEEPS));
    relax(own, this.scratch.subarray(0, own.length), hasAbove, true);
    rows[0].set(ownRows(own));
    await Promise.all(come);
    for (const [rank, [from]] of shares.entries()) ownRows(now).set(rows[rank], from * CELLS);
  }

  async step(job?: FtJob): Promise<void> {
    const { comm, now, scratch, rows } = this;
    const { rank, size } = comm;
    const hasAbove = rank > 0;
    const hasBelow = rank < size - 1;
    const moves: Promise<unknown>[] = [];
    if (hasAbove) moves.push(comm.sendrecv(part(now, SWEEPS, 2 * SWEEPS), rank - 1, 0, part(now, 0, SWEEPS), rank - 1, 0));
    if (hasBelow)
      moves.push(comm.sendrecv(part(now, rows, rows + SWEEPS), rank + 1, 0, part(now, rows + SWEEPS, rows + 2 * SWEEPS), rank + 1, 0));
    await Promise.all(moves);
    if (job?.replaying === true && job.team.size > 1) {
      try {
        return await this.relaxWith(job.team, hasAbove);
      } catch (error) {
        // A helper is gone: the successor goes on alone.
        if (job.team.size > 1) throw error;
      }
    }
    const { stepped } = this;
    if (stepped === undefined || job?.replaying === true) return relax(now, scratch, hasAbove, hasBelow);
    const beganUs = processorUs();
    relax(now, scratch, hasAbove, hasBelow);
    stepped((processorUs() - beganUs) / 1e6);
  }

  /** Of the whole plate, at rank 0. */
  async digest(): Promise<string | undefined> {
    const { comm, own, rows } = this;
    const all = comm.rank === 0 ? new Float64Array(comm.size * rows * CELLS) : null;
    await comm.gather(own, all, 0);
    return all === null ? undefined : digestOf(all);
  }
}
