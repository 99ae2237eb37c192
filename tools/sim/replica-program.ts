// Programs of the profile `replica`: a few flows of each rank that run side by side, exchange messages in rounds, and mix into one state what has
// come, in the order in which it came. So what a replica sends later depends on all outcomes that it could not foresee. A flow is a generator:
// it yields what it waits for.
import type { Found } from '../../src/ft/replica/paired-pml.ts';
import { ANY } from '../../src/pml/match.ts';
import type { Envelope, RecvRequest, SendRequest } from '../../src/pml/records.ts';
import type { Prng } from '../../src/util/prng.ts';

/** What a flow waits for. `call`: without the event loop, so that no other flow goes on; `look`: for nothing, it wants to know. */
export type Wait =
  | { readonly kind: 'idle'; done(): boolean }
  | { readonly kind: 'call'; done(): boolean; readonly forUs?: number }
  | { readonly kind: 'look'; find(): Found };
export type Flow = Generator<Wait, void, Found>;

export const YES: Found = [1];

/** How a rank takes the messages of a round; the second ones leave no turn to other flows, from which others may wait for messages. */
const TOGETHER = ['named', 'any', 'probe', 'mprobe'] as const;
const WAYS = [...TOGETHER, 'look', 'called', 'tested'] as const;
type Way = (typeof WAYS)[number];
const EXTRAS = ['none', 'none', 'none', 'value', 'cancel', 'expire', 'deadline', 'validate', 'peek'] as const;

interface Planned {
  readonly from: number;
  readonly to: number;
  readonly bytes: number;
  readonly sync: boolean;
}

interface Round {
  readonly tag: number;
  readonly messages: readonly Planned[];
  readonly ways: readonly Way[];
  readonly extras: readonly (typeof EXTRAS)[number][];
}

export interface ReplicaProgram {
  readonly ranks: number;
  /** By flow. */
  readonly rounds: readonly (readonly Round[])[];
}

const BYTES_MAX = 12_000;
export const USER_CTX = 0;
/** Of receives that nobody sends anything for. */
const NEVER_TAG = 30_000;

export function drawReplicaProgram(prng: Prng, ranks: number, eagerBytes: number): ReplicaProgram {
  const flows = prng.pick([1, 1, 2, 3]);
  const most = prng.pick([2, 5, 12]);
  const rounds = Array.from({ length: flows }, (_, flow) =>
    Array.from({ length: prng.between(1, most) }, (_, index): Round => {
      const count = prng.between(0, 2 * ranks);
      const messages = Array.from({ length: count }, () => ({
        from: prng.below(ranks),
        to: prng.below(ranks),
        bytes: prng.pick([0, 1, 8, eagerBytes, eagerBytes + 1, prng.below(BYTES_MAX)]),
        sync: prng.chance(1, 5),
      }));
      return {
        tag: index * 8 + flow,
        messages,
        ways: Array.from({ length: ranks }, () => prng.pick(flows === 1 ? WAYS : TOGETHER)),
        extras: Array.from({ length: ranks }, () => prng.pick(EXTRAS)),
      };
    }),
  );
  return { ranks, rounds };
}

/** What a flow is given of its process. */
export interface FlowHost {
  readonly rank: number;
  isend(to: number, tag: number, bytes: Uint8Array, sync: boolean): SendRequest;
  irecv(source: number, tag: number, bytes: Uint8Array): RecvRequest;
  imrecv(envelope: Envelope, bytes: Uint8Array): RecvRequest;
  probe(source: number, tag: number, takes: boolean): { readonly done: boolean; readonly envelope: Envelope | undefined };
  find(source: number, tag: number): Found;
  value(): { readonly done: boolean; readonly bytes: Uint8Array | undefined };
  validate(): { readonly done: boolean };
  cancel(request: RecvRequest): Wait;
  /** A timer of this process ends it. */
  expireLater(request: RecvRequest): void;
  /** What has come so far is one thing more. */
  mix(value: number): void;
  mixBytes(bytes: Uint8Array): void;
  /** The program has that message. */
  got(from: number, tag: number, bytes: Uint8Array): void;
  /** Bytes that follow from all that has come. */
  fill(bytes: Uint8Array): void;
}

const idle = (done: () => boolean): Wait => ({ kind: 'idle', done });

/** The part of a rank in one round of one flow. */
function* playRound(host: FlowHost, { tag, messages, ways, extras }: Round): Flow {
  const { rank } = host;
  const incoming = messages.filter(({ to }) => to === rank);
  const way = ways[rank];
  const isPosted = way === 'named' || way === 'any' || way === 'called' || way === 'tested';
  const buffers = incoming.map(() => new Uint8Array(BYTES_MAX));
  const receives = isPosted ? incoming.map(({ from }, i) => host.irecv(way === 'any' ? ANY : from, tag, buffers[i])) : [];
  const sends: SendRequest[] = [];
  for (const { from, to, bytes, sync } of messages) {
    if (from !== rank) continue;
    const buffer = new Uint8Array(bytes);
    host.fill(buffer);
    sends.push(host.isend(to, tag, buffer, sync));
  }
  yield* playExtra(host, extras[rank]);
  const took = ({ matchedSource, matchedTag, receivedBytes, error }: RecvRequest, buffer: Uint8Array): void => {
    if (error !== undefined) throw error;
    host.got(matchedSource, matchedTag, buffer.subarray(0, receivedBytes));
    host.mix(matchedSource + 1);
    host.mixBytes(buffer.subarray(0, receivedBytes));
    // It is the program's again, who uses it.
    buffer.fill(0xee);
  };
  const left = new Set(receives);
  const takeDone = (): void => {
    for (const request of [...left]) {
      if (!request.done) continue;
      left.delete(request);
      took(request, buffers[receives.indexOf(request)]);
    }
  };
  while (left.size > 0) {
    const anyDone = (): boolean => [...left].some(({ done }) => done);
    if (way === 'tested') {
      // Each look is one more, whether it finds something or not.
      yield { kind: 'look', find: () => (anyDone() ? YES : []) };
      host.mix(anyDone() ? 5 : 3);
    } else if (way === 'called') yield { kind: 'call', done: anyDone };
    else yield idle(anyDone);
    takeDone();
  }
  for (let i = 0; !isPosted && i < incoming.length; i++) {
    const buffer = buffers[i];
    let request: RecvRequest;
    if (way === 'look') {
      let found: Found = [];
      while (found.length === 0) {
        found = yield { kind: 'look', find: () => host.find(ANY, tag) };
        host.mix(found.length);
      }
      request = host.irecv(found[0], tag, buffer);
    } else {
      const probe = host.probe(ANY, tag, way === 'mprobe');
      yield idle(() => probe.done);
      const envelope = probe.envelope as Envelope;
      host.mix(envelope.messageBytes);
      request = way === 'mprobe' ? host.imrecv(envelope, buffer) : host.irecv(envelope.source, tag, buffer);
    }
    yield idle(() => request.done);
    took(request, buffer);
  }
  yield idle(() => sends.every(({ done }) => done));
  for (const { error } of sends) if (error !== undefined) throw error;
}

function* playExtra(host: FlowHost, extra: Round['extras'][number]): Flow {
  switch (extra) {
    case 'value': {
      const value = host.value();
      yield idle(() => value.done);
      host.mixBytes(value.bytes as Uint8Array);
      return;
    }
    case 'validate': {
      const result = host.validate();
      yield idle(() => result.done);
      return;
    }
    case 'cancel': {
      const request = host.irecv(ANY, NEVER_TAG, new Uint8Array(8));
      const found = yield host.cancel(request);
      host.mix(found[0]);
      return;
    }
    case 'peek':
      for (let i = 0; i < 3; i++) {
        const found = yield { kind: 'look', find: () => host.find(ANY, NEVER_TAG - 1 - (i % 2) * NEVER_TAG) };
        host.mix(found.length);
      }
      return;
    case 'expire': {
      const request = host.irecv(ANY, NEVER_TAG, new Uint8Array(8));
      host.expireLater(request);
      yield idle(() => request.done);
      host.mix(request.error?.code.length ?? 0);
      return;
    }
    case 'deadline': {
      const request = host.irecv(ANY, NEVER_TAG, new Uint8Array(8));
      const inTime = yield { kind: 'call', done: () => request.done, forUs: 1000 };
      host.mix(inTime.length);
      yield host.cancel(request);
      return;
    }
    case 'none':
  }
}

export function* playFlow(host: FlowHost, rounds: readonly Round[]): Flow {
  for (const round of rounds) yield* playRound(host, round);
}
