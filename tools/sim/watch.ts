// The invariants that span both sides of a pair, checked at every step: credit, what each side knows of a rail, bounds on what is kept.
// They compare the state of the production code of two processes, which only a simulator can see in one moment.

import { ENVELOPE_CHARGE_BYTES } from '../../src/pml/hdr.ts';
import type { PmlPeer } from '../../src/pml/records.ts';
import type { Engine } from '../../src/progress/engine.ts';
import { serialDiff } from '../../src/util/serial.ts';
import { OracleError } from './oracle.ts';

/** What a watch needs of a process. */
export interface Watched {
  readonly rank: number;
  readonly engine: Engine;
}

/**
 * By sender and receiver: bytes of messages that were not known to be delivered when an earlier life of the receiver forgot that it had taken them.
 * They may come once more, and are the same then.
 */
export type Forgotten = ReadonlyMap<string, number>;

type Sent = PmlPeer['sends'] extends Iterable<infer M> ? M : never;

/** What it uses of its sender's credit. */
const chargeOf = (message: Sent): number => ('charge' in message ? message.charge : message.bytes + ENVELOPE_CHARGE_BYTES);

/** The message with that number was taken here: it is not charged to anybody's credit a second time. */
function isTaken(receiver: PmlPeer, ctx: number, seq: number): boolean {
  const flow = receiver.flowsIn.get(ctx);
  return flow !== undefined && flow.holes?.has(seq) !== true && (serialDiff(seq, flow.expectedSeq) < 0 || flow.early.has(seq));
}

/**
 * I10. What the sender has used of its credit is what the receiver has released and holds, and what has not reached the receiver. Neither
 * side believes more of the limit than the other has granted or been told.
 */
function checkCredit(sender: Watched, receiver: Watched, forgotten: Forgotten): void {
  const from = sender.engine.pml.knownPeer(receiver.rank);
  const to = receiver.engine.pml.knownPeer(sender.rank);
  // Ranks that have not met.
  if (from === undefined || to === undefined) return;
  if (from.failure !== undefined || from.saidBye || to.failure !== undefined) return;
  let underWay = 0;
  for (const message of from.sends) {
    const charge = chargeOf(message);
    if (charge > 0 && !isTaken(to, message.ctx, message.seq)) underWay += charge;
  }
  const { rank } = receiver;
  const slack = forgotten.get(`${sender.rank}/${receiver.rank}`) ?? 0;
  if (Math.abs(from.creditUsed - to.releasedBytes - to.heldBytes - underWay) > slack) {
    throw new OracleError(
      `I10: rank ${sender.rank} has used ${from.creditUsed} bytes of credit at rank ${rank}, where ${to.releasedBytes} are released and ${to.heldBytes} held; ${underWay} are under way`,
    );
  }
  const grantedBytes = to.releasedBytes + receiver.engine.pml.options.unexpectedBytesMax;
  if (from.creditLimit > grantedBytes)
    throw new OracleError(`I10: rank ${sender.rank} may send ${from.creditLimit} bytes to rank ${rank}, which grants ${grantedBytes}`);
  if (from.creditUsed > from.creditLimit)
    throw new OracleError(`I10: rank ${sender.rank} has used ${from.creditUsed} of ${from.creditLimit} bytes at rank ${rank}`);
  if (to.creditTold > from.creditLimit)
    throw new OracleError(`I10: rank ${rank} takes ${to.creditTold} for told, and rank ${sender.rank} knows of ${from.creditLimit}`);
}

/** I11. An epoch that one side holds for alive and the other knows to be over: the other owes it a RAILDOWN. */
function checkRails(here: Watched, there: Watched): void {
  const mine = here.engine.pml.knownPeer(there.rank);
  const theirs = there.engine.pml.knownPeer(here.rank);
  if (mine === undefined || theirs === undefined) return;
  if (mine.ended !== undefined || theirs.ended !== undefined || mine.bml.closed || theirs.bml.closed || theirs.leaving) return;
  const { rails } = mine.bml;
  for (let i = 0; i < rails.length; i++) {
    const { epoch, highestDead } = rails[i];
    if (epoch !== 0 && epoch <= highestDead)
      throw new OracleError(`I11: epoch ${epoch} of rail ${i} is alive at rank ${here.rank}, where all up to ${highestDead} are over`);
    if (epoch === 0 || theirs.bml.rails[i].highestDead < epoch) continue;
    const owed = theirs.railDowns.get(i);
    if (owed === undefined || owed.epoch < epoch)
      throw new OracleError(
        `I11: rank ${there.rank} knows that epoch ${epoch} of rail ${i} is over, rank ${here.rank} does not, and is owed ${owed === undefined ? 'nothing' : `epoch ${owed.epoch}`}`,
      );
  }
}

/** I6. Bounds on what is kept. */
function checkBounds({ rank, engine }: Watched): void {
  const { retainedBytes, abandonedBytes, options, peers } = engine.pml;
  const { retainedBytesMax, unexpectedBytesMax, abandonedBytesMax } = options;
  if (retainedBytes > retainedBytesMax) throw new OracleError(`I6: rank ${rank} retains ${retainedBytes} bytes`);
  if (abandonedBytes > abandonedBytesMax)
    throw new OracleError(`I6: rank ${rank} keeps ${abandonedBytes} bytes of sends that were given up`);
  for (const peer of peers) {
    if (peer.heldBytes > unexpectedBytesMax) throw new OracleError(`I6: rank ${rank} holds ${peer.heldBytes} bytes of rank ${peer.rank}`);
    if (peer.copiesOnRail < 0) throw new OracleError(`I6: rank ${rank} counts ${peer.copiesOnRail} copies on rails to rank ${peer.rank}`);
  }
}

/** Looks at all of them. `ran`: the ranks that had a turn since the last look; what concerns no other has not changed. */
export function watch(processes: readonly Watched[], ran: ReadonlySet<number>, forgotten: Forgotten): void {
  for (const rank of ran) {
    const own = processes[rank];
    checkBounds(own);
    checkCredit(own, own, forgotten);
    for (const { rank: peer } of own.engine.pml.peers) {
      const other = processes[peer];
      if (other === own) continue;
      checkCredit(own, other, forgotten);
      checkRails(own, other);
      if (ran.has(other.rank)) continue;
      checkCredit(other, own, forgotten);
      checkRails(other, own);
    }
  }
}

/** That rank is about to forget the numbers of what it has been sent: `forgotten` gets what its senders hold for messages that it has taken. */
export function noteForgotten(
  processes: readonly Watched[],
  rank: number,
  contexts: readonly number[],
  forgotten: Map<string, number>,
): void {
  const { pml } = processes[rank].engine;
  for (const { rank: from, engine } of processes) {
    const key = `${from}/${rank}`;
    for (const message of engine.pml.knownPeer(rank)?.sends ?? []) {
      if (!contexts.includes(message.ctx) || !isTaken(pml.peer(from), message.ctx, message.seq)) continue;
      forgotten.set(key, (forgotten.get(key) ?? 0) + chargeOf(message));
    }
  }
}
