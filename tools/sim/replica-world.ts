// The simulated world of replicas: two or three processes of each rank, each with the production engine, PML and BML and the paired layer over it. A
// program runs on all of them (replica-program.ts); in some runs one of them is struck by a fault. The oracle holds F11: nothing leaves before two have
// come to the same message with the same bytes, and a run that ends well has the same results at all.
import type { MultirailError } from '../../src/errors.ts';
import { LeadPml } from '../../src/ft/replica/lead.ts';
import { placeOf } from '../../src/ft/replica/pairs.ts';
import { Prng } from '../../src/util/prng.ts';
import { OracleError } from './oracle.ts';
import { BULK_CTX, type Death, PAIR_CTX, Replica, type ReplicaHost, type ReplicaWorldOptions, TAKEOVER_CTX } from './replica-process.ts';
import { type ReplicaProgram, USER_CTX } from './replica-program.ts';
import { World } from './world.ts';

export class ReplicaWorld implements ReplicaHost {
  readonly world: World;
  readonly options: ReplicaWorldOptions;
  readonly replicas: Replica[];
  readonly divergences: MultirailError[] = [];
  flips = 0;
  deaths = 0;
  takeovers = 0;
  /** Logs that were full. */
  tornLogs = 0;
  private hasEnded = false;
  private readonly heard = new Set<string>();
  private readonly prng: Prng;
  /** Processes that were outvoted, and shadows that were told to leave. */
  readonly outvoted = new Set<number>();
  readonly dropped = new Set<number>();

  constructor(program: ReplicaProgram, options: ReplicaWorldOptions) {
    this.options = options;
    this.prng = new Prng(`${options.seed}/told`);
    this.world = new World({
      ...options,
      services: new Set([USER_CTX, ...PAIR_CTX, ...BULK_CTX, TAKEOVER_CTX]),
      onTurn: (process) => this.onTurn(process),
    });
    this.replicas = Array.from({ length: options.ranks }, (_, process) => new Replica(this, process, program, options));
    for (const death of options.deaths ?? []) this.strike(death);
  }

  /** A process dies, and all that live are told. */
  private strike({ process: dead, atUs, toldAfterUs, spreadUs = 0 }: Death): void {
    const { world } = this;
    world.fabric.at(atUs, () => {
      if (this.isFinished || world.isDead(dead)) return;
      this.deaths++;
      this.end(dead, toldAfterUs, spreadUs);
    });
  }

  /** That lead dies while all leave, if its rank has a shadow. */
  strikeLeaving(rank: number, afterUs: number): void {
    const { world } = this;
    const { fabric } = world;
    const shadow = rank + this.options.ranks / 2;
    if (world.isDead(rank) || world.isDead(shadow)) return;
    fabric.at(fabric.nowUs + afterUs, () => {
      // A launcher says of those that have left that they have.
      if (!world.processes[rank].engine.isLeft()) this.end(rank, this.prng.below(100), 100);
    });
  }

  private end(dead: number, toldAfterUs: number, spreadUs = 0): void {
    const { world } = this;
    const { fabric } = world;
    world.kill(dead);
    for (const replica of this.living) {
      const afterUs = toldAfterUs + (spreadUs === 0 ? 0 : this.prng.below(spreadUs));
      fabric.at(fabric.nowUs + afterUs, () => this.tell(replica, dead));
    }
  }

  /** What a launcher tells a process. */
  tell({ process, takeovers }: Replica, dead: number): void {
    const { world } = this;
    const replica = this.replicas[process];
    const heard = `${process}/${dead}`;
    if (world.isDead(process) || this.heard.has(heard)) return;
    this.heard.add(heard);
    const fail = (): void => world.tellFailed(process, dead);
    if (takeovers === undefined) fail();
    else takeovers.died(dead, fail);
    const { pml } = replica;
    if (this.hasEnded || !pml.links.some(({ twin }) => twin.number === dead)) return;
    if (pml instanceof LeadPml) pml.shadowDied(dead);
    else if (takeovers !== undefined) {
      this.takeovers++;
      replica.takeOver(pml, takeovers);
    }
  }

  /** As it is now. */
  private leadOf(process: number): Replica {
    const { rank, ranks } = placeOf(process, this.options.ranks, this.options.replicas);
    return this.world.isDead(rank) && this.replicas[rank + ranks].pml.isLead ? this.replicas[rank + ranks] : this.replicas[rank];
  }

  /** The run cannot go on. */
  onLost(error: MultirailError): void {
    if (this.tornLogs === 0) throw new OracleError(`F12: ${error.message}`);
    this.hasEnded = true;
  }

  private get living(): Replica[] {
    return this.replicas.filter(({ process }) => !this.world.isDead(process));
  }

  private onTurn(process: number): void {
    // The engines have their first turn before the programs are there.
    const replica = this.replicas?.[process];
    if (replica === undefined || this.isCutShort) return;
    replica.run();
    this.check(replica);
  }

  /** F10: the lead runs ahead of its shadow by no more than it may, and one burst. */
  private check({ pml, rank }: Replica): void {
    if (!(pml instanceof LeadPml)) return;
    const most = this.options.aheadBytesMax + 200_000;
    if (pml.aheadBytes > most) throw new OracleError(`F10: the lead of rank ${rank} is ${pml.aheadBytes} bytes ahead of its shadow`);
  }

  /** The process has a turn then. */
  after(process: number, us: number, then: () => void): void {
    const { fabric } = this.world;
    fabric.at(fabric.nowUs + us, () => {
      then();
      this.world.processes[process].engine.schedule();
    });
  }

  onDiverged(rank: number, error: MultirailError): void {
    const { flip, ranks, replicas } = this.options;
    if (flip === undefined || this.flips === 0) throw new OracleError(`F11: nothing was flipped, and ${error.message}`);
    if (rank !== this.leadOf(flip.process).rank) throw new OracleError(`F11: rank ${rank} is blamed: ${error.message}`);
    // Of three only a lead that goes its own way ends the job.
    const isOwnWay = flip.where === 'course' && flip.process < ranks / replicas;
    if (replicas === 3 && this.deaths === 0 && !isOwnWay) throw new OracleError(`F11: one of three was struck, and ${error.message}`);
    this.divergences.push(error);
  }

  onOutvoted(process: number, text: string): void {
    this.mustBeStruck(process, text);
    if (this.outvoted.has(process)) throw new OracleError(`F11: told twice: ${text}`);
    this.outvoted.add(process);
  }

  onDropped(process: number, text: string): void {
    this.mustBeStruck(process, text);
    this.dropped.add(process);
  }

  private mustBeStruck(process: number, text: string): void {
    const { flip } = this.options;
    if (flip?.process !== process || this.flips === 0) throw new OracleError(`F11: process ${process} is blamed: ${text}`);
  }

  /** It has ended itself, which is not the place for that in the middle of its turn. */
  onLeave(process: number): void {
    if (!this.dropped.has(process)) this.onDropped(process, 'it leaves by itself');
    const { fabric } = this.world;
    fabric.at(fabric.nowUs, () => {
      if (!this.isFinished && !this.world.isDead(process)) this.end(process, 10);
    });
  }

  get isFinished(): boolean {
    return this.hasEnded || this.divergences.length > 0 || this.living.every(({ pml }) => pml.isFinished);
  }

  /** The job was ended before its programs were. */
  get isCutShort(): boolean {
    return this.hasEnded || this.divergences.length > 0;
  }

  /** F12: each rank has received what the others have sent to it, once each, whoever has died. */
  private checkMessages(): void {
    const { ranks, replicas } = this.options;
    const key = ({ tag, bytes }: { tag: number; bytes: Uint8Array }): string => `${tag}: ${Buffer.from(bytes).toString('base64')}`;
    const leads = Array.from({ length: ranks / replicas }, (_, rank) => this.leadOf(rank));
    for (const from of leads) {
      for (const to of leads) {
        const sent = from.said.filter((said) => said.to === to.rank).map(key);
        const got = to.received.filter((one) => one.from === from.rank).map(key);
        if (sent.sort().join() !== got.sort().join())
          throw new OracleError(
            `F12: rank ${from.rank} has sent ${sent.length} messages to rank ${to.rank}, which has received ${got.length}, and not the same`,
          );
      }
    }
  }

  /** A run that ends well has the same results at all replicas of each rank. */
  checkEnd(): void {
    const { flip, replicas } = this.options;
    if (this.flips > 0 && replicas === 2) throw new OracleError('F11: a bit was flipped, and the run has ended well');
    if (flip !== undefined && this.flips > 0 && this.deaths === 0 && !this.outvoted.has(flip.process) && !this.dropped.has(flip.process))
      throw new OracleError(`F11: process ${flip.process} was struck, and nobody has seen it`);
    if (flip === undefined) this.checkMessages();
    for (const replica of this.living) {
      const lead = this.leadOf(replica.process);
      if (!this.dropped.has(replica.process) && replica.state !== lead.state)
        throw new OracleError(`F11: rank ${replica.rank} has ended with another result at a shadow`);
      if (replica.pml.openCount > 0)
        throw new OracleError(`F3: rank ${replica.rank} has ended with ${replica.pml.openCount} open requests`);
    }
  }

  describe(): string {
    return this.living
      .filter(({ pml }) => !pml.isFinished)
      .map(
        ({ rank, pml, isOver, place: state }) =>
          `${pml.isLead ? 'lead' : 'shadow'} of ${rank}: ${isOver ? 'over' : 'runs'}, ${pml.openCount} open, due ${pml.due?.what}, ${state}`,
      )
      .join('; ');
  }
}
