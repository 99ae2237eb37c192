// The driver convention: how the tester makes an implementation act as a rank. There is one JSON object per line and direction, over the
// standard input and output of a program or over a TCP connection. docs/internals/WIRE-SUITE.md states it for implementers. Types only.

/** Version of this convention, in the answer to `describe`. */
export const DRIVER_VERSION = 1;

/** What an implementation may be unable to do; clauses that need it are then reported as skipped. */
export const FEATURES = {
  receive: 'posts receives: `recv`, `test`, `cancel`',
  accept: 'is dialled: works as the higher rank of a pair',
  dial: 'dials: works as the lower rank of a pair',
  send: 'sends messages: `send`',
  probe: 'looks for messages that wait: `probe`',
  contexts: 'frees contexts: `freeContext`',
  rails: 'tells the state of its rails: `rails`',
  leave: 'leaves the job in good order: `finalize`, `left`',
  liveness: 'accepts liveness connections',
} as const;
export type Feature = keyof typeof FEATURES;

export interface Description {
  driver: number;
  name: string;
  version: string;
  protocol: number;
  features: Feature[];
  transports: string[];
  /** As in the modex: equal for processes of one host and network namespace. */
  hostId: string;
}

/** The job in which the implementation is to be one of two ranks. */
export interface StartCommand {
  rank: number;
  size: number;
  jobId: string;
  /** Hexadecimal; null = a job without a secret. */
  secret: string | null;
  incarnation: number;
  transport: string;
  /** Rails per pair of interfaces. */
  links: number;
  unexpectedBytesMax: number;
  eagerLimitBytes: number;
  rndvInlineBytes: number;
  fragBytes: number;
  retainedBytesMax: number;
  /** Put a CRC on payloads that this side sends. */
  payloadCrc: boolean;
  /** How long a peer without a rail is waited for. */
  peerTimeoutMs: number;
  peer: { rank: number; entry: unknown };
}

/** Answer to `test`. */
export interface RequestState {
  done: boolean;
  /** A code of src/errors.ts, absent when there is no error. */
  error?: string;
  cancelled?: boolean;
  /** Where the message of a receive that is done came from. */
  source?: number;
  tag?: number;
  /** Bytes in the buffer, and their SHA-256. */
  bytes?: number;
  sha256?: string;
}

export interface RailView {
  state: string;
  epoch: number;
  /** Kind of §16 of docs/internals/PROTOCOL.md, of the last loss or failed attempt. */
  lastReason?: string;
}

/** Commands with their arguments and answers. */
export interface Commands {
  describe: { in: Record<never, never>; out: Description };
  start: { in: StartCommand; out: { entry: unknown } };
  recv: { in: { request: number; source: number; ctx: number; tag: number; bytes: number }; out: Record<never, never> };
  send: {
    in: { request: number; dest: number; ctx: number; tag: number; bytes: number; seed: number; sync: boolean };
    out: Record<never, never>;
  };
  test: { in: { request: number }; out: RequestState };
  cancel: { in: { request: number }; out: { cancelled: boolean } };
  probe: { in: { source: number; ctx: number; tag: number }; out: { found: boolean; source?: number; tag?: number; bytes?: number } };
  freeContext: { in: { ctx: number }; out: Record<never, never> };
  rails: { in: Record<never, never>; out: { rails: RailView[] } };
  finalize: { in: Record<never, never>; out: Record<never, never> };
  left: { in: Record<never, never>; out: { left: boolean } };
  stop: { in: Record<never, never>; out: Record<never, never> };
}
export type CommandName = keyof Commands;
