// Small records of what one side owes the other, or has registered for it, and of what nobody received.
import type { Registration } from '../btl/btl.ts';

/** A message that its receiver never received, though it ended well. */
export interface Unreceived {
  /** World rank of the other side. */
  readonly peer: number;
  readonly ctx: number;
  readonly tag: number;
  readonly bytes: number;
}

/** RGET: memory that the sender registered for the receiver, whole, reachable over one epoch of one rail. */
export interface ReadableWindow {
  readonly rail: number;
  readonly railEpoch: number;
  readonly registration: Registration;
}

/** A range that was put and whose FIN the receiver has not confirmed. */
export interface OwedFin {
  readonly number: number;
  readonly from: number;
  readonly to: number;
  telling: boolean;
}

export interface OwedRailDown {
  epoch: number;
  onRail: boolean;
}

export interface OwedRestartNack {
  senderSlot: number;
  senderGeneration: number;
  receiverSlot: number;
  receiverGeneration: number;
  epoch: number;
  onRail: boolean;
}
