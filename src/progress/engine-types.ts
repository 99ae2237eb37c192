// What the engine is given: what drives it, its options, and who is told what happens.
import type { BmlOptions } from '../bml/options.ts';
import type { Rail, RailState } from '../bml/rail.ts';
import type { BtlModule, WatchedWords } from '../btl/btl.ts';
import type { MultirailError } from '../errors.ts';
import type { Poller } from '../native/poller.ts';
import type { PmlOptions } from '../pml/core.ts';
import type { PeerPlan } from './peers.ts';
import type { RailEvent } from './rail-events.ts';

/** What drives the engine: the event loop of a process, or the simulator. */
export interface Driver {
  /** Readiness of descriptors, where the native part is there. */
  readonly poller?: Poller | undefined;
  /** The driver polls again by itself, and parks the engine when it stops: no module need ask for a doorbell. */
  readonly pollsAgain?: boolean;
  now(): number;
  /** Run engine.progress() soon: after the current turn of user code, before anything is waited for. */
  defer(): void;
  /** As defer(), but after event sources had their turn: this progress() has not come to its end. */
  yield(): void;
  /** Run engine.progress() at this time at the latest; replaces the time given before. */
  arm(atMs: number): void;
}

export interface EngineOptions {
  rank: number;
  pml: PmlOptions;
  bml: BmlOptions;
  peerTimeoutMs: number;
}

export interface EngineHooks {
  /** Something is needed of that rank, or it dials, for the first time: what addPeer() takes. Undefined when it is not in the job. */
  planPeer?(rank: number): PeerPlan | undefined;
  /** Something is needed of that peer for the first time, by it or by this rank. */
  onPeerMet?(rank: number): void;
  onRailEvent?(event: RailEvent): void;
  onRailState?(rail: Rail, from: RailState, to: RailState): void;
  /** No rail has led to that peer for so long, asked again and again; 'wait': it is not given up yet, whatever the time-out says. */
  onUnreachable?(rank: number, forMs: number): 'wait' | undefined;
  onPeerFailed?(rank: number, error: MultirailError, lostMessages: number): void;
  /** That peer refuses this process as one that has failed. True: that is seen to; else the peer is taken to be dead. */
  onRefused?(rank: number, text: string): boolean;
  /** The peer said BYE: nothing more comes from it. */
  onPeerLeft?(rank: number): void;
  onAddressChanged?(module: BtlModule): void;
  log?(level: 'debug' | 'info' | 'warn', text: string): void;
}

/** Calls of the application that wait for memory which other processes write. */
export interface MemoryWaits {
  /** Some call is to be looked at, now and then at least. */
  readonly isWaiting: boolean;
  /** What some call waits for may come any moment. */
  readonly wantsSpin: boolean;
  /** Looks whether something has come; returns how much there was to do. */
  progress(nowMs: number): number;
  /** Before sleep: as that of a module that is polled in memory. */
  park(): boolean;
  nextDeadline(): number;
  /** As that of a module that is polled in memory. */
  watch(watched: WatchedWords): boolean;
}
