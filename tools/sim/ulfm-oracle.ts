// What must hold of agreements, deaths and revocations, whatever happens (I16 to I25 of docs/internals/SIMULATION.md). It knows who was
// killed, who called what, what leaders proposed and what came out; of messages it knows how many there were. Used by the simulator and by
// the small world of the unit tests.

import type { Bitmap } from '../../src/ulfm/bitmap.ts';
import type { Replacement } from '../../src/ulfm/replace.ts';
import type { AgreementListener, TracedAgreement } from '../../src/ulfm/states.ts';
import type { Decision, Ulfm } from '../../src/ulfm/ulfm.ts';
import { type Contribution, OPERATION, type Value } from '../../src/ulfm/values.ts';
import { HEADER_BYTES, OFFSET, SERIES, SERVICE, type SeriesNumber } from '../../src/ulfm/wire.ts';
import { OracleError } from './oracle.ts';

/**
 * Messages of one agreement for each member and each process that is gone, at most, beyond the 4 (n - 1) of the tree: a STATE, a PROPOSE, an
 * ACK and a DECIDE to and from a new leader. (The most that was seen is a quarter of it.)
 */
const MESSAGES_PER_LOSS = 4;

interface Proposed {
  readonly value: Value;
  readonly by: number;
  /** Process numbers. */
  readonly members: readonly number[];
}

export class UlfmOracle {
  private readonly cores = new Map<number, Ulfm>();
  /** Killed: nothing comes from them any more. */
  readonly dead = new Set<number>();
  /** Dead, or declared dead while they live. */
  readonly declared = new Set<number>();
  readonly left = new Set<number>();
  /** Ids that somebody has revoked by himself. */
  readonly revoked = new Set<number>();
  /** By agreement and process. */
  private readonly calls = new Map<string, Contribution & { readonly dead: readonly number[] }>();
  private readonly open = new Set<string>();
  /** By agreement: what leaders have put together. */
  private readonly proposed = new Map<string, Map<string, Proposed>>();
  /** `witnesses`: members that lived when it was first decided. */
  private readonly decided = new Map<string, { key: string; by: number; witnesses: readonly number[] }>();
  /** By id and generation: who its members are, as the first that opened it has them. */
  private readonly memberships = new Map<string, { members: readonly number[]; by: number }>();
  /** How often a message went out: by agreement; by sender and death; by sender, communicator and type. */
  private readonly agreementMessages = new Map<string, number>();
  private readonly floodMessages = new Map<string, number>();
  private readonly revokeMessages = new Map<string, number>();
  private readonly callMessages = new Map<string, number>();
  /** Calls of replace() by communicator and first agreement: how they have ended, as the first that knows it has it. */
  private readonly replacements = new Map<string, { key: string; by: number }>();
  private readonly openReplacements = new Set<string>();
  /** Communicators that replace() has made: members, and those that have them. */
  private readonly made = new Map<number, { members: readonly number[]; enteredBy: Set<number> }>();
  /** The communicator in which a process that stood by has its place. */
  private readonly places = new Map<number, number>();
  /** Communicators that standbys are called into: the one whose members call. */
  private readonly origins = new Map<number, number>();
  /** By the communicator whose members call: who has said that he cannot come. */
  private readonly refusals = new Map<number, Set<number>>();
  /** Numbers that were given, and those of processes that have joined after the start. */
  private readonly enrolled = new Set<number>();
  private readonly late = new Set<number>();
  /** Those of them that everybody had in its pool when the value was put together that was proposed last, by communicator. */
  private readonly offered = new Map<number, ReadonlySet<number>>();
  decisions = 0;
  /** Processes that were called in and have their place. */
  successors = 0;
  /** Agreements that several leaders have led: these are hard to get right. */
  heldProposals = 0;

  addProcess(number: number, core: Ulfm): void {
    this.cores.set(number, core);
  }

  /** I26: the server of the job gives that number to a process, which it gives to no other one. */
  enroll(number: number, isLate: boolean): void {
    if (this.enrolled.has(number)) throw new OracleError(`I26: number ${number} is given to a second process`);
    this.enrolled.add(number);
    if (isLate) this.late.add(number);
  }

  /** Processes that have joined after the start. */
  get joins(): number {
    return this.late.size;
  }

  /** I26: whoever is spoken to is known, unless the speaker was declared dead: the server tells it of nobody that joins. */
  checkKnown(number: number, to: number): void {
    if (this.declared.has(number)) return;
    if (this.cores.get(number)?.knowledge.incarnationOf(to) !== undefined) return;
    throw new OracleError(`I26: process ${number} has a message for process ${to}, of which it has not heard`);
  }

  /** Everybody in the job has that process in its pool. */
  private isInAllPools(number: number): boolean {
    return [...this.enrolled].every(
      (other) =>
        other === number ||
        this.declared.has(other) ||
        this.left.has(other) ||
        this.cores.get(other)?.standbys.ready.includes(number) === true,
    );
  }

  listenerOf(number: number, more?: AgreementListener): AgreementListener {
    return {
      onEvent: (agreement, event) => more?.onEvent?.(agreement, event),
      onTransition: (agreement, from, to) => more?.onTransition?.(agreement, from, to),
      onProposed: (agreement, value, contributors, isHeld) => {
        more?.onProposed?.(agreement, value, contributors, isHeld);
        this.propose(number, agreement, value, contributors, isHeld);
      },
    };
  }

  /** A process has a communicator with these members, by rank. */
  join(number: number, id: number, members: readonly number[], generation: number): void {
    const key = `${id} in generation ${generation}`;
    const known = this.memberships.get(key);
    if (known === undefined) {
      this.memberships.set(key, { members, by: number });
      if (new Set(members).size !== members.length || !members.includes(number))
        throw new OracleError(`I22: process ${number} opens communicator ${key} of ${members.join(' ')}`);
    } else if (known.members.length !== members.length || known.members.some((member, rank) => member !== members[rank]))
      throw new OracleError(
        `I22: communicator ${key} has ${known.members.join(' ')} at process ${known.by}, and ${members.join(' ')} at process ${number}`,
      );
  }

  /** A service message goes out. */
  send(number: number, bytes: Uint8Array): void {
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
    const type = bytes[OFFSET.type];
    const id = view.getUint32(OFFSET.id, true);
    if (type === SERVICE.FAILED) count(this.floodMessages, `${number}|${view.getUint32(HEADER_BYTES + 4, true)}`);
    else if (type === SERVICE.REVOKE || type === SERVICE.REVOKED) count(this.revokeMessages, `${number}|${id}`);
    else if (type === SERVICE.CALLED_IN) count(this.callMessages, `${number}|${id}`);
    else count(this.agreementMessages, `${id}/${bytes[OFFSET.series]}/${view.getUint32(OFFSET.q, true)}`);
  }

  private membersOf(id: number): Set<number> {
    const all = new Set<number>();
    for (const [key, { members }] of this.memberships) if (Number(key.split(' ')[0]) === id) for (const member of members) all.add(member);
    return all;
  }

  /** I23: nobody says anything without end. */
  private checkMessages(): void {
    for (const [name, messages] of this.agreementMessages) {
      const members = [...this.membersOf(Number(name.split('/')[0]))];
      const losses = members.filter((number) => this.declared.has(number) || this.left.has(number)).length;
      const most = (4 + MESSAGES_PER_LOSS * losses) * (members.length - 1);
      if (messages > most)
        throw new OracleError(`I23: agreement ${name} of ${members.length} members took ${messages} messages, where ${most} are enough`);
    }
    // To neighbours, and once to each that joins beside it later.
    const flood = 2 * Math.ceil(Math.log2(Math.max(2, this.cores.size))) + this.late.size;
    for (const [key, messages] of this.floodMessages)
      if (messages > flood) throw new OracleError(`I23: process ${key.replace('|', ' tells of the death of ')} in ${messages} messages`);
    for (const [key, messages] of this.callMessages) {
      const { size } = this.membersOf(Number(key.split('|')[1]));
      if (messages >= size) throw new OracleError(`I23: process ${key.replace('|', ' calls into communicator ')} ${messages} times`);
    }
    for (const [key, messages] of this.revokeMessages) {
      // A successor that died before it had the communicator was told, too.
      const others = this.cores.size - 1;
      if (messages > others)
        throw new OracleError(`I23: process ${key.replace('|', ' says of communicator ')} ${messages} times that it is revoked`);
    }
  }

  /** A member calls replace(). */
  beginReplace(number: number, id: number, ticket: number): void {
    this.openReplacements.add(`replace ${id}/${ticket}|${number}`);
  }

  /** I25: replace() has ended at a member, as at all others. */
  replaced(number: number, { id, ticket, value, made }: Replacement): void {
    if (!this.openReplacements.delete(`replace ${id}/${ticket}|${number}`))
      throw new OracleError(`I25: process ${number} has the outcome of replace ${id}/${ticket}, for which it does not wait`);
    if (this.declared.has(number)) return;
    const key = made === undefined ? `nothing: ${keyOf(value)}` : `${made.id} of ${made.members.join(' ')}`;
    const first = this.replacements.get(`${id}/${ticket}`);
    if (first === undefined) {
      this.replacements.set(`${id}/${ticket}`, { key, by: number });
      if (made === undefined) this.checkSpares(`${id}/${ticket}`, id, value);
    } else if (first.key !== key)
      throw new OracleError(`I25: replace ${id}/${ticket} has made ${first.key} at process ${first.by}, and ${key} at process ${number}`);
    if (made?.hasSuccessors === true) this.enter(number, made.id, made.members);
  }

  /** A communicator comes into being, into which the members of another one call standbys. */
  callInto(id: number, origin: number): void {
    this.origins.set(id, origin);
  }

  /** A process that stands by says in that communicator that it cannot come. */
  refuse(number: number, id: number): void {
    const origin = this.origins.get(id) as number;
    const refusals = this.refusals.get(origin) ?? new Set();
    this.refusals.set(origin, refusals.add(number));
  }

  /** I25: where replace() has made nothing, there were too few. Whoever waits now has waited, or was about to wait again, when it was decided. */
  private checkSpares(name: string, id: number, { failed, operations }: Value): void {
    if (operations !== OPERATION.REPLACE_ALL) return;
    const free = [...this.cores].filter(
      ([number, { standby }]) =>
        standby?.state === 'WAITING' &&
        !this.declared.has(number) &&
        !this.left.has(number) &&
        this.refusals.get(id)?.has(number) !== true &&
        // The word that one has come may have been on its way when the leader looked. The decision may have taken long from there.
        (!this.late.has(number) || this.offered.get(id)?.has(number) === true),
    );
    if (free.length >= failed.count)
      throw new OracleError(
        `I25: replace ${name} has made nothing for ${failed.count} failed, and ${free.map(([number]) => number).join(', ')} stand by`,
      );
  }

  /** I25: a process that stood by has its place, and has only one. */
  joined(number: number, id: number, members: readonly number[]): void {
    const place = this.places.get(number);
    if (place !== undefined)
      throw new OracleError(`I25: process ${number} has a place in communicator ${place}, and takes another one in ${id}`);
    this.places.set(number, id);
    this.successors++;
    if (!this.declared.has(number)) this.enter(number, id, members);
  }

  private enter(number: number, id: number, members: readonly number[]): void {
    const made = this.made.get(id) ?? { members, enteredBy: new Set() };
    this.made.set(id, made);
    made.enteredBy.add(number);
    if (!made.members.includes(number)) throw new OracleError(`I25: process ${number} enters communicator ${id}, and is no member`);
  }

  /** I25: when all is quiet, a communicator that one has got from replace() all its members have that live. */
  private checkReplaced(): void {
    for (const [id, { members, enteredBy }] of this.made) {
      const missing = members.filter((number) => !enteredBy.has(number) && !this.declared.has(number) && !this.left.has(number));
      if (missing.length > 0)
        throw new OracleError(`I25: communicator ${id} has ${members.join(' ')}, and ${missing.join(', ')} are not in it`);
    }
  }

  kill(number: number): void {
    this.dead.add(number);
    this.declared.add(number);
    for (const key of this.open) if (key.endsWith(`|${number}`)) this.open.delete(key);
  }

  isDead(number: number): boolean {
    return this.dead.has(number);
  }

  call(number: number, id: number, series: SeriesNumber, q: number, contribution: Contribution): void {
    const key = `${id}/${series}/${q}|${number}`;
    const core = this.cores.get(number) as Ulfm;
    this.calls.set(key, { ...contribution, dead: core.membersOf(id).filter((member) => core.knowledge.isFailed(member)) });
    this.open.add(key);
  }

  private propose(by: number, { name }: TracedAgreement, value: Value, contributors: Bitmap, isHeld: boolean): void {
    const key = keyOf(value);
    const proposed = this.proposed.get(name) ?? new Map<string, Proposed>();
    this.proposed.set(name, proposed);
    const core = this.cores.get(by) as Ulfm;
    const [id, series] = name.split('/').map(Number);
    const members = core.membersOf(id);
    for (const [rank, number] of members.entries()) {
      if (contributors.has(rank) || this.declared.has(number) || this.left.has(number)) continue;
      throw new OracleError(`I17: process ${by} proposes a value of agreement ${name} without process ${number}, which lives`);
    }
    const before = this.decided.get(name);
    if (before !== undefined && before.key !== key && !this.declared.has(by)) {
      // What nobody knows any more who lives was lost with the last that knew it, and successors begin again.
      const witness = before.witnesses.find((number) => !this.declared.has(number));
      if (witness !== undefined)
        throw new OracleError(`I16: agreement ${name}: process ${before.by} decided ${before.key}, and process ${by} proposes ${key}`);
      this.decided.delete(name);
    }
    if (isHeld) {
      this.heldProposals++;
      if (!proposed.has(key))
        throw new OracleError(`I17: process ${by} proposes a held value of agreement ${name} that nobody has put together`);
      return;
    }
    const numbers = [...contributors].map((rank) => members[rank]);
    proposed.set(key, { value, by, members: [...members] });
    // Agreements of the other series go on beside those of replace(), and may be put together later.
    if (series === SERIES.PROGRAM) this.offered.set(id, new Set([...this.late].filter((number) => this.isInAllPools(number))));
    this.checkValue(name, by, value, members, numbers);
    if (this.declared.has(by)) return;
    // Everybody who is alive knows of it, so the leader does, too.
    for (const [rank, number] of members.entries()) {
      if (value.failed.has(rank) && !this.declared.has(number))
        throw new OracleError(`I17: agreement ${name} names process ${number} as failed, which lives`);
      const isKnownToAll = members.every((other) => {
        return this.declared.has(other) || this.left.has(other) || this.cores.get(other)?.knowledge.isFailed(number) === true;
      });
      if (isKnownToAll && this.declared.has(number) && !value.failed.has(rank))
        throw new OracleError(`I17: agreement ${name} does not name process ${number} as failed, which all that live know to be dead`);
    }
  }

  /** The value is exactly what its contributors brought. */
  private checkValue(name: string, by: number, value: Value, members: readonly number[], contributors: readonly number[]): void {
    let flag = 0xffff_ffff;
    let operations = 0;
    const acked = new Set(members.keys());
    for (const number of contributors) {
      const call = this.calls.get(`${name}|${number}`);
      if (call === undefined) throw new OracleError(`I17: process ${number} contributes to agreement ${name}, which it has not called`);
      flag = (flag & call.flag) >>> 0;
      operations |= call.operation;
      for (const rank of acked) if (!call.acked.has(rank)) acked.delete(rank);
      for (const [rank, member] of members.entries())
        if (call.dead.includes(member) && !value.failed.has(rank))
          throw new OracleError(
            `I17: process ${by} proposes for agreement ${name} that ${member} has not failed, which process ${number} knew to be dead`,
          );
    }
    const wrong = [
      value.flag === flag ? undefined : `flag ${value.flag}, where that of all contributions is ${flag}`,
      value.operations === operations ? undefined : `operations ${value.operations}, where ${operations} were called`,
      acked.size === value.acked.count && [...acked].every((rank) => value.acked.has(rank)) ? undefined : `acknowledged ${value.acked}`,
    ].filter((text) => text !== undefined);
    if (wrong.length > 0) throw new OracleError(`I17: process ${by} proposes for agreement ${name}: ${wrong.join('; ')}`);
  }

  /** A process has a decision. Those of a process that was declared dead before count for nothing. */
  decide(number: number, { id, series, q, value }: Decision): void {
    const name = `${id}/${series}/${q}`;
    if (!this.open.delete(`${name}|${number}`))
      throw new OracleError(`I18: process ${number} gets agreement ${name}, for which it does not wait`);
    if (this.declared.has(number)) return;
    this.decisions++;
    const key = keyOf(value);
    const proposed = this.proposed.get(name)?.get(key);
    if (proposed === undefined) throw new OracleError(`I17: process ${number} decides what nobody proposed for ${name}`);
    const first = this.decided.get(name);
    if (first === undefined) {
      const witnesses = proposed.members.filter((member) => !this.declared.has(member));
      this.decided.set(name, { key, by: number, witnesses });
    } else if (first.key !== key)
      throw new OracleError(`I16: agreement ${name}: process ${first.by} decided ${first.key}, and process ${number} ${key}`);
  }

  /** At any time: nobody takes a living process for dead, or himself. */
  checkKnowledge(): void {
    for (const [number, { knowledge, ownDeath }] of this.cores) {
      if (this.dead.has(number)) continue;
      if (ownDeath !== undefined && !this.declared.has(number))
        throw new OracleError(`I19: process ${number} takes itself for dead: ${ownDeath.text}`);
      for (const other of this.cores.keys()) {
        if (knowledge.isFailed(other) && !this.declared.has(other))
          throw new OracleError(`I19: process ${number} takes process ${other} for dead, which lives`);
      }
    }
  }

  /**
   * What was called and has not come out. A process leaves when all that its program has called has come out; what it takes part in besides, to
   * say that it has a place and cannot come, may go on without it.
   */
  unfinished(): string[] {
    return [...this.open, ...this.openReplacements].filter((key) => {
      const number = Number(key.split('|')[1]);
      return !this.declared.has(number) && !this.left.has(number);
    });
  }

  get isFinished(): boolean {
    return this.unfinished().length === 0;
  }

  /** Who of those that live does not know of which death. */
  *unknownDeaths(): Generator<[number: number, dead: number]> {
    for (const [number, { knowledge }] of this.cores) {
      if (this.declared.has(number) || this.left.has(number) || !this.enrolled.has(number)) continue;
      for (const dead of this.declared) if (!this.left.has(dead) && !knowledge.isFailed(dead)) yield [number, dead];
    }
  }

  /** When all is quiet: what was called has ended, deaths and revocations are known to everybody. `has`: the process has that communicator. */
  checkEnd(has: (number: number, id: number) => boolean): void {
    const unfinished = this.unfinished();
    if (unfinished.length > 0)
      throw new OracleError(`I18: ${unfinished.length} agreements did not end: ${unfinished.slice(0, 8).join(', ')}`);
    this.checkKnowledge();
    this.checkReplaced();
    this.checkMessages();
    const living = [...this.cores.keys()].filter((number) => !this.declared.has(number) && !this.left.has(number));
    for (const [number, dead] of this.unknownDeaths())
      throw new OracleError(`I21: process ${number} does not know that process ${dead} is dead`);
    const ids = new Set<number>();
    for (const name of this.calls.keys()) ids.add(Number(name.split('/')[0]));
    for (const id of ids) {
      const members = living.filter((number) => has(number, id));
      const knowing = members.filter((number) => this.cores.get(number)?.isRevoked(id) === true);
      if (knowing.length > 0 && knowing.length < members.length) {
        const missing = members.filter((number) => !knowing.includes(number));
        throw new OracleError(`I20: communicator ${id} is revoked at ${knowing.join(', ')}, and not at ${missing.join(', ')}`);
      }
      if (knowing.length > 0 && !this.revoked.has(id)) throw new OracleError(`I20: communicator ${id} is revoked, and nobody has done it`);
    }
  }
}

function count(counts: Map<string, number>, key: string): void {
  counts.set(key, (counts.get(key) ?? 0) + 1);
}

/** Two values are the same when these are. */
export function keyOf({ operations, generation, flag, newId, failed, acked, successions }: Value): string {
  const successors = successions.map(({ rank, number }) => `${rank}:${number}`);
  return `${operations} g${generation} ${flag} new ${newId} failed ${failed} acked ${acked} successors ${successors.join(' ')}`;
}
