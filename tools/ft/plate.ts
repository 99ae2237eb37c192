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

export class Plate {
  readonly now: Float64Array;
  private readonly stepped: ((processorSeconds: number) => void) | undefined;
  private readonly scratch: Float64Array;
  private readonly comm: Communicator;
  private readonly rows: number;

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

  private spaceOf(team: Communicator, rank: number): Float64Array {
    const [from, to] = this.shareOf(team, rank);
    return strip(to - from);
  }

  /** What a helper does: rows come with those around them, and its own go back. */
  async help(team: Communicator): Promise<void> {
    const { rank, size } = this.comm;
    const now = this.spaceOf(team, team.rank);
    const scratch = this.spaceOf(team, team.rank);
    for (;;) {
      await team.recv(now, 0, 0);
      relax(now, scratch, true, team.rank < team.size - 1 || rank < size - 1);
      await team.send(ownRows(now), 0, 0);
    }
  }

  /** A step of a successor with those that help it; the strip is as it was until all have done their part. */
  private async relaxWith(team: Communicator, hasAbove: boolean): Promise<void> {
    const { now } = this;
    const pieces = Array.from({ length: team.size }, (_, rank) => {
      const [from, to] = this.shareOf(team, rank);
      return part(now, from, to + 2 * SWEEPS).slice();
    });
    const moves: Promise<unknown>[] = [];
    const come = pieces.map((piece) => new Float64Array(ownRows(piece).length));
    for (let helper = 1; helper < team.size; helper++) moves.push(team.send(pieces[helper], helper, 0), team.recv(come[helper], helper, 0));
    relax(pieces[0], this.spaceOf(team, 0), hasAbove, true);
    come[0] = ownRows(pieces[0]) as Float64Array<ArrayBuffer>;
    await Promise.all(moves);
    for (const [rank, rows] of come.entries()) ownRows(now).set(rows, this.shareOf(team, rank)[0] * CELLS);
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
