// What is owed to a peer, not to one of its messages: RAILDOWN, RESTARTNACK and CREDIT. Events only note what is owed, and pump() sends it;
// what was lost with a rail is owed still, so it is sent again.
import { type CompletionStatus, DELIVERED, OK } from '../btl/btl.ts';
import { serialDiff } from '../util/serial.ts';
import type { PmlCore } from './core.ts';
import { PACKET } from './hdr.ts';
import type { OwedRestartNack } from './owed-records.ts';
import type { FrameUse, PmlPeer } from './records.ts';

export class OwedToPeers {
  private readonly core: PmlCore;

  constructor(core: PmlCore) {
    this.core = core;
  }

  // ---------------------------------------------------------------- what comes to be owed

  /** A rail came up: the first thing on it is this side's table of dead epochs. */
  railUp(peer: PmlPeer, railIndex: number, epoch: number): void {
    // The handshake of a newer epoch told the peer of this rail's older ones.
    const owed = peer.railDowns.get(railIndex);
    if (owed !== undefined && owed.epoch < epoch) peer.railDowns.delete(railIndex);
    for (const dead of this.core.bml.deadEpochs(peer.bml)) {
      const live = peer.bml.byNumber[dead.rail]?.epoch ?? 0;
      if (live > dead.epoch || peer.railDowns.has(dead.rail)) continue;
      peer.railDowns.set(dead.rail, { epoch: dead.epoch, onRail: false });
    }
    this.core.markDirty(peer);
  }

  railDown(peer: PmlPeer, railIndex: number, epoch: number): void {
    const owed = peer.railDowns.get(railIndex);
    if (owed === undefined || owed.epoch < epoch) peer.railDowns.set(railIndex, { epoch, onRail: false });
    this.core.markDirty(peer);
  }

  /** A NOTIFY came for a message that is received in full. */
  restartNack(
    peer: PmlPeer,
    packet: { senderSlot: number; senderGeneration: number; epoch: number },
    slot: number,
    generation: number,
  ): void {
    const key = `${packet.senderSlot}.${packet.senderGeneration}`;
    const owed = peer.restartNacks.get(key);
    if (owed !== undefined && serialDiff(packet.epoch, owed.epoch) < 0) return;
    peer.restartNacks.set(key, {
      senderSlot: packet.senderSlot,
      senderGeneration: packet.senderGeneration,
      receiverSlot: slot,
      receiverGeneration: generation,
      epoch: packet.epoch,
      onRail: false,
    });
    this.core.markDirty(peer);
  }

  // ---------------------------------------------------------------- what is sent

  /** Gives it to the rails: whether anything was sent, or that no rail has room. */
  pump(peer: PmlPeer): boolean | 'busy' {
    const { core } = this;
    let any = false;
    // Most peers never owe any of these.
    if (peer.railDowns.size > 0 || peer.restartNacks.size > 0) {
      const sent = this.pumpRestarts(peer);
      if (sent === 'busy') return sent;
      any = sent;
    }
    if (core.isCreditDue(peer)) {
      core.out.type = PACKET.CREDIT;
      core.out.flags = 0;
      if (core.sendControl(peer, { kind: 'credit' }) !== OK) return 'busy';
      any = true;
    }
    return any;
  }

  /** RAILDOWN and RESTARTNACK. */
  private pumpRestarts(peer: PmlPeer): boolean | 'busy' {
    const { core } = this;
    let any = false;
    for (const [rail, owed] of peer.railDowns) {
      if (owed.onRail) continue;
      core.out.type = PACKET.RAILDOWN;
      core.out.flags = 0;
      core.out.rail = rail;
      core.out.epoch = owed.epoch;
      const use: FrameUse = { kind: 'raildown', rail, epoch: owed.epoch };
      if (core.sendControl(peer, use) !== OK) return 'busy';
      owed.onRail = true;
      any = true;
    }
    for (const owed of peer.restartNacks.values()) {
      if (owed.onRail) continue;
      if (!this.sendRestartNack(peer, owed)) return 'busy';
      any = true;
    }
    return any;
  }

  private sendRestartNack(peer: PmlPeer, owed: OwedRestartNack): boolean {
    const packet = this.core.out;
    packet.type = PACKET.RNDVRESTARTNACK;
    packet.flags = 0;
    packet.senderSlot = owed.senderSlot;
    packet.senderGeneration = owed.senderGeneration;
    packet.receiverSlot = owed.receiverSlot;
    packet.receiverGeneration = owed.receiverGeneration;
    packet.epoch = owed.epoch;
    packet.ctx = 0;
    packet.source = this.core.options.rank;
    packet.seq = 0;
    const use: FrameUse = {
      kind: 'restart-nack',
      senderSlot: owed.senderSlot,
      senderGeneration: owed.senderGeneration,
      epoch: owed.epoch,
    };
    if (this.core.sendControl(peer, use) !== OK) return false;
    owed.onRail = true;
    return true;
  }

  // ---------------------------------------------------------------- completions

  onRailDownCompleted(peer: PmlPeer, use: FrameUse & { kind: 'raildown' }, status: CompletionStatus): void {
    const owed = peer.railDowns.get(use.rail);
    if (owed === undefined || owed.epoch !== use.epoch) return;
    if (status === DELIVERED) peer.railDowns.delete(use.rail);
    else owed.onRail = false;
  }

  onRestartNackCompleted(peer: PmlPeer, use: FrameUse & { kind: 'restart-nack' }, status: CompletionStatus): void {
    const key = `${use.senderSlot}.${use.senderGeneration}`;
    const owed = peer.restartNacks.get(key);
    if (owed === undefined || owed.epoch !== use.epoch) return;
    owed.onRail = false;
    if (status === DELIVERED) peer.restartNacks.delete(key);
    else this.core.markDirty(peer);
  }
}
