// What the server of the out-of-band channel knows about one rank, and the states of a connection.
import type { WebSocket } from 'ws';
import type { OobSession } from './session.ts';

export interface RankInfo {
  incarnation: number;
  pid: number;
  hostId: string;
}

export interface ExitInfo {
  /** Exit code; undefined after a signal or when the rank was lost. */
  code: number | undefined;
  signal: string;
  /** The rank had said that it was done. */
  finalized: boolean;
  /** Taken for dead after silence. */
  lost: boolean;
  /** A newer process of its index has joined. */
  replaced?: boolean;
}

export interface AbortInfo {
  rank: number;
  code: number;
  reason: string;
  stack: string;
}

export interface Member {
  rank: number;
  /** The rank of the start whose place in the starter's numbering this process has; its own number where it is not one of them. */
  index: number;
  /** Its owner has started it, and waits for it. */
  isOwned: boolean;
  session: OobSession;
  info: RankInfo | undefined;
  socket: WebSocket | undefined;
  lifeline: WebSocket | undefined;
  /** When its kernel ended the lifeline; undefined = it did not, or there is a new one. */
  lifelineEndedMs: number | undefined;
  finalized: boolean;
  exit: ExitInfo | undefined;
  /** It waits to be called in, or will. */
  standsBy: boolean;
  /** All that live know it, so it may be called in. */
  isReady: boolean;
  lastContactMs: number;
  ackScheduled: boolean;
  drainWaiters: (() => void)[];
}

/** States of one connection. */
export const CONNECTION = {
  CHALLENGED: 0, // the challenge is sent, the hello is awaited, under a deadline and a bound on bytes
  BOUND: 1, // the rank proved itself: messages go to its session
  CLOSED: 2, // refused, broken, or replaced by a newer connection
} as const;
export type ConnectionState = (typeof CONNECTION)[keyof typeof CONNECTION];
