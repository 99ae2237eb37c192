// The broken endpoints that the suite must find: what each does wrong, the case that is played against it, and a clause that must catch it.
// Those named in test/sim/mutants/table.ts have the mistake inside; the others are multirail's sound endpoint behind an interposer.
import { FLAG_PAYLOAD_CRC, FRAME_BYE, FRAME_COUNT, FRAME_NACK, FRAME_PROBE, FRAME_PROBE_ANSWER } from '../../src/btl/base/frame-hdr.ts';
import { decodePacket, newPacket, PACKET } from '../../src/pml/hdr.ts';
import type { ClauseId } from '../../tools/wire-suite/clauses.ts';
import { packetBytesOf } from '../../tools/wire-suite/rail.ts';
import { type Broken, type Change, FrameBytes } from './interposer.ts';

export interface Planted {
  name: string;
  /** What it does wrong. */
  about: string;
  /** Name, or part of it, of the case that is played. */
  case: string;
  /** Must be among those that fail. */
  caughtBy: ClauseId;
  broken?: Broken;
  /** Planted in the engine: its name in test/sim/mutants/table.ts. */
  mutant?: string;
}

const pass: Change = (frame) => [frame];

/** Every frame is changed in place and sealed again. */
const each =
  (change: (frame: FrameBytes) => boolean | undefined): (() => Change) =>
  () =>
  (frame) => {
    if (frame.kind >= 16) return [frame];
    return change(frame) === false ? [] : [frame.seal()];
  };

const isReadable = (frame: FrameBytes): boolean => {
  try {
    decodePacket(new Uint8Array(frame.packet.buffer, frame.packet.byteOffset, frame.packet.byteLength), newPacket());
    return true;
  } catch {
    return false;
  }
};

/** Passed through the same relay, and nothing changed: must be found sound, or a verdict on its neighbours would mean nothing. */
export const SOUND: readonly Planted[] = [
  'two messages and a probe at every split of their bytes',
  'headers that say what cannot be',
  'checks of the header',
  'kinds that are no kinds of a live rail',
  'wrong frame numbers',
  'wrong counts',
  'NACKs of frames',
  'packets of wrong lengths',
  'packets of other versions and types',
  'a FRAG that is not placed',
  'a count says delivered',
  'refused payloads',
  'probes',
  'charges are released',
  'ACK says what is taken',
  'fragments on the grid',
  'what leaves as a rendezvous',
  'a good end',
  'DATA right behind WELCOME',
].map((name) => ({ name, about: 'nothing', case: name, caughtBy: 'FR-1', broken: { toEndpoint: () => pass, toTester: () => pass } }));

/** Handshakes carried out by the relay by the right rules. */
export const SOUND_HANDSHAKES: readonly Planted[] = [
  'a good handshake',
  'a wrong secret',
  'a reflected proof',
  'a replayed handshake',
  'another job',
  'ranks that are not',
  'an old incarnation',
  'stale epochs',
  'epochs far above',
  'a rail whose index and key',
  'an acceptor that does not know',
  'refusals before the proof',
  'STALE_EPOCH and refusals',
  'STALE_EPOCH with numbers',
  'HELLO',
].map((name) => ({ name, about: 'nothing', case: name, caughtBy: 'HS-1', broken: { rules: {} } }));

export const FRAMING_MUTANTS: readonly Planted[] = [
  {
    name: 'first-of-chunk',
    about: 'takes one frame of each piece that it reads and forgets the rest',
    case: 'two messages and a probe at every split',
    caughtBy: 'FR-1',
    broken: {
      chunks: () => (chunk) => {
        const frame = new FrameBytes(chunk);
        // From the first message on: how pieces of the handshake and of probes fall together is chance.
        if (chunk.length < 40 || frame.view.getUint16(6, true) !== 0x524d || frame.kind !== FRAME_PROBE) return chunk;
        return chunk.subarray(0, 40 + frame.packetHeaderBytes + frame.view.getUint32(8, true));
      },
    },
  },
  {
    name: 'no-halves',
    about: 'drops a frame whose end is not in the piece where it begins',
    case: 'two messages and a probe at every split',
    caughtBy: 'FR-1',
    broken: {
      chunks: () => (chunk) => {
        let at = 0;
        while (at + 40 <= chunk.length) {
          const frame = new FrameBytes(chunk.subarray(at));
          if (frame.view.getUint16(6, true) !== 0x524d) return at === 0 ? undefined : chunk.subarray(0, at);
          const end = at + 40 + frame.packetHeaderBytes + frame.view.getUint32(8, true);
          if (end > chunk.length) break;
          at = end;
        }
        return at === 0 ? undefined : chunk.subarray(0, at);
      },
    },
  },
  {
    name: 'any-magic',
    about: 'does not look at the magic',
    case: 'headers that say what cannot be',
    caughtBy: 'FR-2',
    broken: { toEndpoint: each((frame) => void frame.view.setUint16(6, 0x524d, true)) },
  },
  {
    name: 'any-version',
    about: 'does not look at the version of a frame',
    case: 'headers that say what cannot be',
    caughtBy: 'CV-1',
    broken: { toEndpoint: each((frame) => void frame.view.setUint8(0, 1)) },
  },
  {
    name: 'any-crc',
    about: 'does not check headerCrc',
    case: 'checks of the header',
    caughtBy: 'FR-3',
    broken: { toEndpoint: each(() => undefined) },
  },
  {
    name: 'any-flags',
    about: 'ignores flags of the frame that it does not know',
    case: 'checks of the header',
    caughtBy: 'FR-3',
    broken: { toEndpoint: each((frame) => void frame.view.setUint16(2, frame.view.getUint16(2, true) & 7, true)) },
  },
  {
    name: 'any-kind',
    about: 'skips kinds of frames that it does not know',
    case: 'kinds that are no kinds',
    caughtBy: 'FR-4',
    broken: { toEndpoint: () => (frame) => (frame.kind === 0 || (frame.kind > 6 && frame.kind < 16) || frame.kind > 21 ? [] : [frame]) },
  },
  {
    name: 'any-number',
    about: 'does not look at the numbers of frames',
    case: 'wrong frame numbers',
    caughtBy: 'CN-2',
    broken: {
      toEndpoint: () => {
        let number = 0;
        return each((frame) => {
          if (frame.kind === 1 || frame.kind === FRAME_BYE) frame.view.setUint32(12, ++number, true);
          return undefined;
        })();
      },
    },
  },
  {
    name: 'any-count',
    about: 'believes no count of what it never sent, and does not mind',
    case: 'wrong counts',
    caughtBy: 'CN-7',
    broken: { toEndpoint: each((frame) => void frame.view.setUint32(16, 0, true)) },
  },
  {
    name: 'count-ahead',
    about: 'counts a frame before it has come',
    case: 'a count says delivered',
    caughtBy: 'CN-7',
    broken: { toTester: each((frame) => void frame.view.setUint32(16, frame.view.getUint32(16, true) + 1, true)) },
  },
  {
    name: 'count-not-cumulative',
    about: 'counts what came since the last count',
    case: 'a count says delivered',
    caughtBy: 'CN-5',
    broken: {
      toTester: () => {
        let last = 0;
        return each((frame) => {
          const count = frame.view.getUint32(16, true);
          frame.view.setUint32(16, count - last, true);
          last = count;
          return undefined;
        })();
      },
    },
  },
  {
    name: 'count-forgotten',
    about: 'says 0 as count on every frame but COUNT',
    case: 'a count says delivered',
    caughtBy: 'CN-4',
    broken: {
      toTester: each((frame) => {
        if (frame.kind !== FRAME_COUNT) frame.view.setUint32(16, 0, true);
        return undefined;
      }),
    },
  },
  {
    name: 'count-only-in-data',
    about: 'says no count unless it has something else to say',
    case: 'a count says delivered',
    caughtBy: 'CN-5',
    broken: { toTester: each((frame) => frame.kind !== FRAME_COUNT) },
  },
  {
    name: 'numbers-from-zero',
    about: 'numbers its own frames from 0',
    case: 'ACK says what is taken',
    caughtBy: 'CN-1',
    broken: {
      toTester: each((frame) => {
        if (frame.kind === 1) frame.view.setUint32(12, frame.view.getUint32(12, true) - 1, true);
        return undefined;
      }),
    },
  },
  {
    name: 'received-bytes',
    about: 'says that it received more than was sent',
    case: 'a count says delivered',
    caughtBy: 'FR-6',
    broken: { toTester: each((frame) => void frame.view.setFloat64(24, frame.view.getFloat64(24, true) + 5000, true)) },
  },
  {
    name: 'zeros',
    about: 'leaves rubbish in fields that are zero',
    case: 'ACK says what is taken',
    caughtBy: 'CV-2',
    broken: {
      toTester: each((frame) => {
        if (frame.packetType === PACKET.ACK) frame.packet.setUint32(4, 0xabcd, true);
        return undefined;
      }),
    },
  },
  {
    name: 'crc-ignored',
    about: 'does not check payloads',
    case: 'refused payloads',
    caughtBy: 'NK-1',
    broken: {
      toEndpoint: each((frame) => {
        frame.view.setUint16(2, frame.view.getUint16(2, true) & ~FLAG_PAYLOAD_CRC, true);
        frame.view.setUint32(32, 0, true);
        return undefined;
      }),
    },
  },
  {
    name: 'nack-late',
    about: 'says NACK with a count that covers the frame already',
    case: 'refused payloads',
    caughtBy: 'NK-2',
    broken: {
      toTester: each((frame) => {
        if (frame.kind === FRAME_NACK) frame.view.setUint32(16, frame.view.getUint32(16, true) + 1, true);
        return undefined;
      }),
    },
  },
  {
    name: 'nack-ignored',
    about: 'takes NACK for nothing',
    case: 'NACKs of frames',
    caughtBy: 'NK-3',
    broken: { toEndpoint: each((frame) => frame.kind !== FRAME_NACK) },
  },
  {
    name: 'placed-ignored',
    about: 'does not look at PLACED',
    case: 'a FRAG that is not placed',
    caughtBy: 'PL-1',
    broken: {
      toEndpoint: each((frame) => {
        if (frame.packetType === PACKET.FRAG) frame.view.setUint16(2, 1, true);
        return undefined;
      }),
    },
  },
  {
    name: 'probe-unanswered',
    about: 'does not answer PROBE',
    case: 'probes',
    caughtBy: 'PB-1',
    broken: { toTester: each((frame) => frame.kind !== FRAME_PROBE_ANSWER) },
  },
  {
    name: 'probe-answer-without-id',
    about: 'answers every PROBE with the same id',
    case: 'probes',
    caughtBy: 'PB-1',
    broken: {
      toTester: each((frame) => {
        if (frame.kind === FRAME_PROBE_ANSWER) frame.view.setUint32(12, 1, true);
        return undefined;
      }),
    },
  },
  {
    name: 'never-probes',
    about: 'sends without asking first',
    case: 'DATA right behind WELCOME',
    caughtBy: 'HS-13',
    broken: {
      toTester: () => (frame, back) => {
        if (frame.kind !== FRAME_PROBE) return [frame];
        const answer = new FrameBytes(frame.bytes.slice());
        answer.view.setUint8(1, FRAME_PROBE_ANSWER);
        answer.view.setUint32(16, 0, true);
        answer.view.setFloat64(24, 0, true);
        back(answer.seal().bytes);
        return [];
      },
    },
  },
  {
    name: 'packets-skipped',
    about: 'ignores packets that it cannot read',
    case: 'packets of wrong lengths',
    caughtBy: 'PK-1',
    broken: {
      toEndpoint: () => (frame) =>
        frame.kind === 1 && !isReadable(frame) ? [frame.withPacket(packetBytesOf({ ...newPacket(), type: PACKET.CREDIT }))] : [frame],
    },
  },
  {
    name: 'types-skipped',
    about: 'ignores types of packets that it does not know',
    case: 'packets of other versions and types',
    caughtBy: 'PK-8',
    broken: {
      toEndpoint: () => (frame) =>
        frame.kind === 1 && frame.bytes[40] === 1 && !isReadable(frame)
          ? [frame.withPacket(packetBytesOf({ ...newPacket(), type: PACKET.CREDIT }))]
          : [frame],
    },
  },
];

export const HANDSHAKE_MUTANTS: readonly Planted[] = [
  { name: 'any-secret', about: 'takes any PROOF', case: 'a wrong secret', caughtBy: 'HS-2', broken: { rules: { anyProof: true } } },
  {
    name: 'reflection',
    about: 'takes its own MAC for a PROOF',
    case: 'a reflected proof',
    caughtBy: 'HS-2',
    broken: { rules: { anyProof: true } },
  },
  {
    name: 'constant-nonce',
    about: 'always challenges with the same nonce',
    case: 'a replayed handshake',
    caughtBy: 'HS-17',
    broken: { rules: { constantNonce: true } },
  },
  {
    name: 'any-protocol',
    about: 'takes every protocol version',
    case: 'another protocol version',
    caughtBy: 'HS-1',
    broken: { rules: { anyVersion: true } },
  },
  { name: 'any-job', about: 'does not look at the job', case: 'another job', caughtBy: 'HS-2', broken: { rules: { anyJob: true } } },
  {
    name: 'wrong-mac',
    about: 'cannot prove the secret itself',
    case: 'a good handshake',
    caughtBy: 'HS-3',
    broken: { rules: { wrongMac: true } },
  },
  {
    name: 'tells-strangers',
    about: 'tells who has proved nothing that his rank is unknown',
    case: 'ranks that are not',
    caughtBy: 'HS-1',
    broken: { rules: { refuseEarly: true } },
  },
  {
    name: 'any-rank',
    about: 'takes a rank that does not exist for one that does',
    case: 'ranks that are not',
    caughtBy: 'HS-5',
    broken: { rules: { claims: () => ({ rank: 0 }) } },
  },
  {
    name: 'any-incarnation',
    about: 'lets older processes in',
    case: 'an old incarnation',
    caughtBy: 'HS-5',
    broken: { rules: { claims: () => ({ incarnation: 5000 }) } },
  },
  {
    name: 'any-epoch',
    about: 'takes stale epochs',
    case: 'stale epochs',
    caughtBy: 'HS-8',
    broken: { rules: { claims: (hello, n) => ({ epoch: hello.epoch + 10 * n }) } },
  },
  {
    name: 'far-epochs',
    about: 'takes an epoch however far above the highest it is',
    case: 'epochs far above',
    caughtBy: 'HS-19',
    broken: { rules: { claims: (_, n) => ({ epoch: n }) } },
  },
  {
    name: 'any-rail',
    about: 'does not compare keys of rails',
    case: 'a rail whose index and key',
    caughtBy: 'HS-7',
    broken: { rules: { claims: () => ({ key: 'tcp:lo-lo#0' }) } },
  },
  {
    name: 'hasty',
    about: 'takes what stands behind PROOF',
    case: 'frames out of turn',
    caughtBy: 'HS-10',
    broken: { rules: { bytesAfterProof: true } },
  },
  {
    name: 'patient',
    about: 'waits for handshakes for ever',
    case: 'handshakes that are not gone on with',
    caughtBy: 'HS-11',
    broken: { rules: { noDeadline: true } },
  },
  {
    name: 'any-liveness',
    about: 'takes every LIVENESS',
    case: 'liveness connections',
    caughtBy: 'LV-2',
    broken: { rules: { anyLiveness: true } },
  },
  {
    name: 'any-acceptor',
    about: "as dialer does not check the acceptor's MAC",
    case: 'an acceptor that does not know',
    caughtBy: 'DL-2',
    broken: { rules: { anyAcceptor: true } },
  },
  {
    name: 'believes-strangers',
    about: 'as dialer believes a refusal before its proof',
    case: 'refusals before the proof',
    caughtBy: 'DL-3',
    broken: { rules: { believesEarly: true } },
  },
  {
    name: 'same-epoch',
    about: 'as dialer tries again with the same epoch',
    case: 'STALE_EPOCH and refusals',
    caughtBy: 'DL-4',
    broken: { rules: { epochAlways: 3 } },
  },
  {
    name: 'used-up',
    about: 'as dialer believes any highest epoch, and has no number left',
    case: 'STALE_EPOCH with numbers',
    caughtBy: 'DL-9',
    broken: { rules: { epochAlways: 0xffff_ffff } },
  },
  {
    name: 'same-nonce',
    about: 'as dialer uses the same nonce again',
    case: 'HELLO',
    caughtBy: 'HS-17',
    broken: { rules: { constantNonce: true } },
  },
];

export const MESSAGE_MUTANTS: readonly Planted[] = [
  {
    name: 'ack-takes-all',
    about: 'says that it takes the whole message, whatever its buffer holds',
    case: 'ACK says what is taken',
    caughtBy: 'RV-2',
    broken: {
      toTester: each((frame) => {
        if (frame.packetType === PACKET.ACK) frame.packet.setUint32(32, 20_000, true);
        return undefined;
      }),
    },
  },
  {
    name: 'offers-put',
    about: 'announces windows on a rail that cannot be put to',
    case: 'ACK says what is taken',
    caughtBy: 'RV-11',
    broken: {
      toTester: () => (frame) => {
        if (frame.packetType !== PACKET.ACK) return [frame];
        const packet = newPacket();
        decodePacket(new Uint8Array(frame.packet.buffer, frame.packet.byteOffset, frame.packet.byteLength), packet);
        packet.putRails = [{ rail: 0, epoch: 1 }];
        return [frame.withPacket(packetBytesOf(packet))];
      },
    },
  },
  {
    name: 'credit-not-returned',
    about: 'does not release the charge of what was received',
    case: 'charges are released',
    caughtBy: 'CR-2',
    broken: {
      toEndpoint: each((frame) => {
        if (frame.packetType === PACKET.MATCH || frame.packetType === PACKET.RNDV) frame.packet.setUint16(2, 0, true);
        return undefined;
      }),
    },
  },
  {
    name: 'credit-limit-zero',
    about: 'states no limit on its packets',
    case: 'charges are released',
    caughtBy: 'CR-1',
    broken: {
      toTester: each((frame) => {
        if (frame.packetType !== 0) frame.packet.setBigUint64(8, 0n, true);
        return undefined;
      }),
    },
  },
  {
    name: 'truncation-silent',
    about: 'does not tell that a message was cut',
    case: 'eager messages of all lengths',
    caughtBy: 'RV-9',
    broken: {
      answer: (name, answer) => {
        if (name === 'test') delete answer.error;
      },
    },
  },
  {
    name: 'off-grid',
    about: 'cuts fragments as it likes',
    case: 'fragments on the grid',
    caughtBy: 'SD-4',
    broken: { start: () => ({ fragBytes: 5000 }) },
  },
  {
    name: 'long-first-part',
    about: 'sends more at once than it may',
    case: 'what leaves as a rendezvous',
    caughtBy: 'SD-2',
    broken: { start: () => ({ rndvInlineBytes: 3000 }) },
  },
  {
    name: 'spendthrift',
    about: 'sends without credit',
    case: 'credit of the other side',
    caughtBy: 'CR-7',
    broken: { start: ({ peer }) => ({ peer: { ...peer, entry: { ...(peer.entry as object), unexpectedBytesMax: 1 << 30 } } }) },
  },
  {
    name: 'wrong-entry',
    about: 'publishes another bound than the one it keeps',
    case: 'a good handshake',
    caughtBy: 'AD-1',
    broken: {
      entry: (entry) => {
        entry.unexpectedBytesMax = 1;
      },
    },
  },
  {
    name: 'no-bye',
    about: 'leaves without a word',
    case: 'a good end',
    caughtBy: 'BY-1',
    broken: { toTester: each((frame) => frame.kind !== FRAME_BYE) },
  },
  {
    name: 'foreign-source',
    about: 'names another rank as the sender of its messages',
    case: 'eager messages in doubt',
    caughtBy: 'PK-3',
    broken: {
      toTester: each((frame) => {
        if (frame.packetType === PACKET.MATCH) frame.packet.setUint32(20, 9, true);
        return undefined;
      }),
    },
  },
];

/** The mistakes of test/sim/mutants that show on a plain TCP rail. */
export const ENGINE_MUTANTS: readonly Planted[] = (
  [
    ['no-duplicate-check', 'duplicates', 'MT-2'],
    ['early-dropped', 'messages are delivered in the order', 'MT-1'],
    ['newest-first', 'the oldest posted receive', 'MT-5'],
    ['count-twice', 'a range counts once', 'RV-7'],
    ['no-fence', 'NOTIFY fences the rails', 'RR-7'],
    ['keep-sinks', 'NOTIFY revokes what is being written', 'RR-8'],
    ['notify-unanswered', 'everything had arrived: only', 'RR-3'],
    ['notify-duplicate-revokes', 'NOTIFY of the current epoch', 'RR-4'],
    ['restart-ack-twice', 'RESTARTACKs that nobody', 'SR-4'],
    ['old-epoch-counts', 'completions of an older epoch', 'SR-6'],
    ['fence-by-rail', 'RAILDOWN from the other side', 'RD-1'],
    ['complete-on-sent', 'some fragments counted', 'SD-5'],
    ['eager-not-retained', 'eager messages in doubt', 'SD-6'],
    ['ack-once', 'what is in doubt', 'CN-8'],
    ['credit-increment', 'credit of the other side', 'CR-7'],
    ['retained-forever', 'room in the store', 'SD-11'],
  ] as const
).map(([mutant, name, caughtBy]) => ({ name: mutant, about: '', case: name, caughtBy, mutant }));

/** Mistakes of test/sim/mutants that no case on a plain TCP rail shows, with the reason. */
export const UNSEEN_MUTANTS: Readonly<Record<string, string>> = {
  'fin-once': 'FIN is sent for puts and reads only, which plain TCP rails have not; the simulator finds it',
  'eager-credit-kept':
    'the suite sends less than one credit without receives that are posted late; the simulator counts both sides at every step',
  'tail-stays-counted': 'needs more than 128 ranges missing at once; a scenario of the simulator has them',
  'copy-in-doubt-ends': 'needs a second rail, that takes the copy and is lost with it; the simulator finds it',
  'hedged-record-again': 'needs a copy that ends after the message that it is of; the simulator finds it',
  'old-restart-ack': 'needs a second restart while the answer to the first is still under way; the simulator finds it',
  'old-frag-answers': 'needs a fragment that overtakes the loss of the answer before it; the simulator finds it',
  'raildown-once':
    'the endpoint owes it in two ways, and one of them is enough on a rail that comes back; the simulator compares both sides',
  'unmatched-at-bye-succeeds':
    'how a send ends inside the endpoint when its receiver leaves is no matter of the wire; the simulator finds it',
  'fence-below': 'the transport refuses the frame in the same moment; the simulator sees that it was offered',
  'gets-not-awaited': 'needs reads of memory, which plain TCP rails have not; the simulator finds it',
  'returned-on-rail': 'what its user writes into a buffer afterwards is not seen by a tester; the simulator watches memory',
  'doubt-is-told': 'shows only when the next limit is a whole quarter later; the simulator compares both sides',
  'older-raildown-stays': 'needs an epoch that ends before its probe is answered while an older loss is still owed; the simulator finds it',
  'duplicate-returns-credit': 'a limit that grows too far is no mistake that a tester can prove; the simulator counts both sides',
  'puts-not-awaited': 'needs puts, which plain TCP rails have not; the simulator finds it',
  'stale-frag-counts': 'needs a fragment of an older epoch that comes over a rail that lives on; the simulator finds it',
  'windows-stay-registered': 'needs puts, which plain TCP rails have not; the simulator finds it',
  'send-windows-stay-open': 'needs reads of memory, which plain TCP rails have not; the simulator finds it',
  'suspect-never-used': 'rails of the suite are judged by themselves and never suspect; a scenario of the simulator finds it',
  'no-table-at-rail-up': 'equivalent, see its guard in test/sim/mutants/table.ts',
  'given-up-not-copied': "the suite has no command to give a send up; the simulator's profile giveup finds it",
  'given-up-rails-read': "the suite has no command to give a send up; the simulator's profile giveup finds it",
  'given-up-puts-read': "the suite has no command to give a send up; the simulator's profile giveup finds it",
  'given-up-hole-kept': "the suite has no command to give a send up; the simulator's profile giveup finds it",
  'given-up-unbounded': "the suite has no command to give a send up; the simulator's profile giveup finds it",
  'old-fin-counts': 'FIN is sent for puts and reads only, which plain TCP rails have not; a scenario of the simulator finds it',
  'older-nack-wins': 'equivalent, see its guard in test/sim/mutants/table.ts',
  'sinks-kept-at-death': 'equivalent, see its guard in test/sim/mutants/table.ts',
  'leaves-owing-nack': 'equivalent, see its guard in test/sim/mutants/table.ts',
  'dead-epoch-admitted': 'equivalent, see its guard in test/sim/mutants/table.ts',
};
