// Cases of §2 and §4: who is let in, who is told what, and what happens to older epochs. The tester dials.
import {
  FRAME_CHALLENGE,
  FRAME_HEADER_BYTES,
  FRAME_HELLO,
  FRAME_LIVENESS,
  FRAME_PROOF,
  FRAME_WELCOME,
} from '../../../src/btl/base/frame-hdr.ts';
import { type HandshakeIdentity, handshakeFrame, livenessFrame } from '../../../src/btl/base/handshake.ts';
import { PACKET } from '../../../src/pml/hdr.ts';
import type { Case, CaseContext } from '../case.ts';
import type { ClauseId } from '../clauses.ts';
import type { Feature } from '../convention.ts';
import { type Answer, Dialer, type HandshakeConnection, reflectedProof, viewChallenge, viewRefuse } from '../handshake.ts';
import { pattern } from '../pattern.ts';
import { type Rail, sealHeader } from '../rail.ts';
import { ANY, Session, sleep } from '../session.ts';

/** A handshake of the acceptor may last this long at most; a tester waits a little longer. */
const HANDSHAKE_MS_MAX = 3000;
/** How far above the highest one an epoch in a HELLO may be. */
const EPOCHS_AHEAD_MAX = 2 ** 20;

const needs: readonly Feature[] = ['accept'];

const nameOf = (answer: Answer): string => {
  if (answer.kind !== 'frame') return answer.kind;
  const refuse = viewRefuse(answer.frame);
  return refuse === undefined ? `a frame of kind ${answer.frame.header.kind}` : `REFUSE ${refuse.reason} "${refuse.text}"`;
};

async function refused(t: CaseContext, clause: ClauseId, connection: HandshakeConnection, reason: string, what: string): Promise<number> {
  const answer = await connection.next(t.config.limitMs);
  const refuse = answer.kind === 'frame' ? viewRefuse(answer.frame) : undefined;
  t.must(clause, refuse?.reason === reason, `${what} is refused with ${reason}; it was answered by ${nameOf(answer)}`);
  const after = await connection.next(t.config.limitMs);
  t.check(clause, after.kind === 'closed', `${what}: after REFUSE the connection is closed (${nameOf(after)})`);
  return refuse?.highestEpoch ?? 0;
}

async function closedSilently(t: CaseContext, clause: ClauseId, connection: HandshakeConnection, what: string): Promise<void> {
  const answer = await connection.next(t.config.limitMs);
  t.check(clause, answer.kind === 'closed', `${what}: closed without a word (${nameOf(answer)})`);
}

/** Says HELLO and a right PROOF of that identity, whatever it claims. */
async function prove(session: Session, dialer: Dialer, rail = 0): Promise<HandshakeConnection> {
  const connection = await session.connection(rail);
  const challenge = await session.challenged(dialer, connection);
  connection.write(dialer.proof(challenge));
  return connection;
}

/** The same handshake frame with one bit of its body flipped, and sealed again. */
function flipped(frame: Uint8Array, at: number): Uint8Array {
  const bytes = frame.slice();
  bytes[FRAME_HEADER_BYTES + at] ^= 1;
  sealHeader(bytes, bytes.length - FRAME_HEADER_BYTES);
  return bytes;
}

/** Bytes of a nonce that are the same in all of these: drawn at random, one is in a run of eight only once in 10^15. */
export function standingBytes(nonces: readonly Uint8Array[]): number[] {
  return [...nonces[0].keys()].filter((at) => nonces.every((nonce) => nonce[at] === nonces[0][at]));
}

/** The endpoint still takes a rail and a message: nothing that was tried before has harmed it. */
async function stillWorks(session: Session, epoch: number): Promise<Rail> {
  const rail = await session.connect(0, epoch);
  rail.write(rail.probeFrame().bytes);
  await session.settle();
  return rail;
}

/** The header byte by byte and the rest in small pieces: a handshake has its time, also on a busy machine. */
async function dribble(connection: HandshakeConnection, bytes: Uint8Array): Promise<void> {
  for (let at = 0; at < bytes.length; ) {
    const to = Math.min(bytes.length, at + (at < 44 ? 1 : 16));
    connection.write(bytes.subarray(at, to));
    at = to;
    await new Promise((resolve) => setImmediate(resolve));
  }
}

const withIdentity = (session: Session, change: Partial<HandshakeIdentity>): HandshakeIdentity => ({ ...session.identity, ...change });

export const HANDSHAKE_CASES: readonly Case[] = [
  {
    name: 'a good handshake, and the entry that leads to it',
    group: 'handshake',
    needs,
    clauses: ['HS-1', 'HS-3', 'HS-4', 'HS-13', 'AD-1', 'AD-2', 'PB-1', 'CV-2', 'FR-6', 'FR-7', 'FR-8'],
    run: async (t) => {
      const session = await Session.begin(t);
      const rail = await session.connect(0, 1);
      await session.stays('HS-1', rail, 'after WELCOME');
    },
  },
  {
    name: 'as many rails as both sides want, and no more',
    group: 'handshake',
    transport: 'tcp',
    needs,
    clauses: ['AD-2', 'HS-7'],
    run: async (t) => {
      const session = await Session.begin(t, { links: 3 });
      t.check('AD-2', session.keys.length === 3, `three links of one pair make three rails: ${session.keys.join(', ')}`);
      for (let index = 0; index < 3; index++) await session.connect(index, 1);
      const beyond = new Dialer(session.identity, session.hello(3, 1, { key: session.keys[2].replace('#2', '#3') }));
      await refused(t, 'HS-7', await prove(session, beyond), 'RAIL_MISMATCH', 'a fourth rail');
    },
  },
  {
    name: 'a rail whose index and key do not belong together',
    group: 'handshake',
    transport: 'tcp',
    needs,
    clauses: ['HS-7'],
    run: async (t) => {
      const session = await Session.begin(t, { links: 2 });
      const crossed = new Dialer(session.identity, session.hello(0, 1, { key: session.keys[1] }));
      await refused(t, 'HS-7', await prove(session, crossed), 'RAIL_MISMATCH', 'rail 0 under the key of rail 1');
      await stillWorks(session, 1);
    },
  },
  {
    name: 'a wrong secret',
    group: 'handshake',
    needs,
    clauses: ['HS-2'],
    run: async (t) => {
      const session = await Session.begin(t);
      const connection = await session.connection();
      const stranger = new Dialer(withIdentity(session, { secret: new Uint8Array(32).fill(7) }), session.hello(0, 1));
      connection.write(stranger.hello());
      const answer = await connection.next(t.config.limitMs);
      const isChallenge = answer.kind === 'frame' && answer.frame.header.kind === FRAME_CHALLENGE;
      t.must('HS-2', isChallenge, `a stranger gets a CHALLENGE like anybody (${nameOf(answer)})`);
      if (answer.kind === 'frame') connection.write(stranger.proof(answer.frame.packetHeader));
      await closedSilently(t, 'HS-2', connection, 'a PROOF made with another secret');
      // Every byte counts, the last as well as the first.
      for (const at of [0, 7, 8, 15, 16, 24, 31]) {
        const dialer = new Dialer(session.identity, session.hello(0, 1));
        const near = await session.connection();
        const proof = dialer.proof(await session.challenged(dialer, near));
        near.write(flipped(proof, at));
        await closedSilently(t, 'HS-2', near, `a PROOF of which byte ${at} is wrong`);
      }
      await stillWorks(session, 1);
    },
  },
  {
    name: 'a reflected proof',
    group: 'handshake',
    needs,
    clauses: ['HS-2', 'HS-3'],
    run: async (t) => {
      const session = await Session.begin(t);
      const connection = await session.connection();
      const dialer = new Dialer(session.identity, session.hello(0, 1));
      const challenge = await session.challenged(dialer, connection);
      connection.write(reflectedProof(challenge));
      await closedSilently(t, 'HS-2', connection, "the acceptor's own MAC as PROOF");
    },
  },
  {
    name: 'a replayed handshake',
    group: 'handshake',
    needs,
    clauses: ['HS-17', 'HS-2'],
    run: async (t) => {
      const session = await Session.begin(t);
      const dialer = new Dialer(session.identity, session.hello(0, 1));
      const first = await session.connection();
      const challenge = await session.challenged(dialer, first);
      const proof = dialer.proof(challenge);
      first.close();
      const second = await session.connection();
      const again = await session.challenged(dialer, second);
      const nonces = [challenge, again].map((body) => Buffer.from(viewChallenge(body)?.nonce ?? []).toString('hex'));
      t.check('HS-17', nonces[0] !== nonces[1], 'two CHALLENGEs to the same HELLO have different nonces');
      second.write(proof);
      await closedSilently(t, 'HS-2', second, 'HELLO and PROOF of an earlier connection');
      const drawn: Uint8Array[] = [];
      for (let i = 0; i < 8; i++) {
        const connection = await session.connection();
        const body = await session.challenged(dialer, connection);
        drawn.push(Uint8Array.from(viewChallenge(body)?.nonce ?? []));
        connection.close();
      }
      const standing = standingBytes(drawn);
      t.check('HS-17', standing.length === 0, `bytes of the nonce that are the same in 8 CHALLENGEs: ${standing.join(', ') || 'no'}`);
    },
  },
  {
    name: 'another protocol version',
    group: 'handshake',
    needs,
    clauses: ['HS-1', 'CV-1'],
    run: async (t) => {
      const session = await Session.begin(t);
      for (const version of [1, 3, 0xffff_ffff]) {
        const connection = await session.connection();
        connection.write(new Dialer(session.identity, session.hello(0, 1), undefined, version).hello());
        await refused(t, 'HS-1', connection, 'BAD_VERSION', `protocol version ${version}`);
      }
      const short = await session.connection();
      short.write(handshakeFrame(FRAME_HELLO, new Uint8Array([9, 0, 0, 0])));
      await refused(t, 'HS-1', short, 'BAD_VERSION', 'a HELLO of another version and of another length');
      const framed = await session.connection();
      const bytes = new Dialer(session.identity, session.hello(0, 1)).hello();
      bytes[0] = 2;
      framed.write(bytes);
      await refused(t, 'CV-1', framed, 'BAD_VERSION', 'frame version 2');
      await stillWorks(session, 1);
    },
  },
  {
    name: 'another job',
    group: 'handshake',
    needs,
    clauses: ['HS-2'],
    run: async (t) => {
      const session = await Session.begin(t);
      const connection = await session.connection();
      connection.write(new Dialer(withIdentity(session, { jobId: `${session.start.jobId}x` }), session.hello(0, 1)).hello());
      await refused(t, 'HS-2', connection, 'BAD_JOB', 'a HELLO of another job');
    },
  },
  {
    name: 'a job without a secret',
    group: 'handshake',
    needs,
    nearOnly: true,
    clauses: ['HS-15'],
    run: async (t) => {
      const session = await Session.begin(t, { secret: null });
      const rail = await session.connect(0, 1);
      await session.stays('HS-15', rail, 'the job id is the key');
    },
  },
  {
    name: 'ranks that are not in the job',
    group: 'handshake',
    needs,
    clauses: ['HS-5'],
    run: async (t) => {
      const session = await Session.begin(t);
      for (const rank of [2, 77, 0xffff_ffff]) {
        await refused(
          t,
          'HS-5',
          await prove(session, new Dialer(session.identity, session.hello(0, 1, { rank }))),
          'UNKNOWN_RANK',
          `rank ${rank}`,
        );
      }
      const unknownAndOld = new Dialer(session.identity, session.hello(9, 1, { rank: 5, incarnation: 1 }));
      await refused(
        t,
        'HS-5',
        await prove(session, unknownAndOld),
        'UNKNOWN_RANK',
        'an unknown rank of an old incarnation on an unknown rail',
      );
      await stillWorks(session, 1);
    },
  },
  {
    name: 'an old incarnation',
    group: 'handshake',
    needs,
    clauses: ['HS-5'],
    run: async (t) => {
      const session = await Session.begin(t);
      const old = new Dialer(session.identity, session.hello(0, 1, { incarnation: session.identity.incarnation - 1 }));
      await refused(t, 'HS-5', await prove(session, old), 'OLD_INCARNATION', 'an older process');
      const oldAndWrong = new Dialer(session.identity, session.hello(8, 1, { incarnation: 1 }));
      await refused(t, 'HS-5', await prove(session, oldAndWrong), 'OLD_INCARNATION', 'an older process on an unknown rail');
      await stillWorks(session, 1);
    },
  },
  {
    name: 'a newer incarnation ends the older process',
    group: 'handshake',
    needs: ['accept', 'receive'],
    clauses: ['HS-6', 'HS-5'],
    run: async (t) => {
      const session = await Session.begin(t);
      const rail = await session.connect(0, 1);
      const pending = await session.recv(session.rank, 5, 10);
      const newer = new Dialer(session.identity, session.hello(0, 2, { incarnation: session.identity.incarnation + 1 }));
      await refused(t, 'HS-6', await prove(session, newer), 'PEER_FAILED', 'a newer process');
      const state = await session.done('HS-6', pending, 'a receive from the older process');
      t.check('HS-6', state.error === 'ERR_PROC_FAILED', `it ends with ERR_PROC_FAILED (${state.error})`);
      await session.closes('HS-6', rail, 'the rail of the older process');
      const same = new Dialer(session.identity, session.hello(0, 3));
      await refused(t, 'HS-5', await prove(session, same), 'PEER_FAILED', 'the older process itself, from now on');
    },
  },
  {
    name: 'stale epochs',
    group: 'handshake',
    needs,
    clauses: ['HS-8', 'HS-9'],
    run: async (t) => {
      const session = await Session.begin(t);
      const rail = await session.connect(0, 5);
      for (const epoch of [1, 5]) {
        const stale = new Dialer(session.identity, session.hello(0, epoch));
        const highest = await refused(t, 'HS-8', await prove(session, stale), 'STALE_EPOCH', `epoch ${epoch} while epoch 5 lives`);
        t.check('HS-8', highest >= 5, `the refusal says how high it must be (${highest})`);
      }
      await session.stays('HS-8', rail, 'a stale attempt beside it');
      rail.drop();
      await sleep(t.config.quietMs);
      const dead = new Dialer(session.identity, session.hello(0, 5));
      await refused(t, 'HS-8', await prove(session, dead), 'STALE_EPOCH', 'epoch 5 after its end');
      const newer = await session.connect(0, 6);
      const newest = await session.connect(0, 6 + EPOCHS_AHEAD_MAX);
      await session.closes('HS-9', newer, 'a newer epoch takes over');
      await session.stays('HS-9', newest, 'the newer epoch');
    },
  },
  {
    name: 'epochs far above the highest',
    group: 'handshake',
    needs,
    clauses: ['HS-19', 'HS-9'],
    run: async (t) => {
      const session = await Session.begin(t);
      const first = await session.connect(0, 5);
      for (const epoch of [0xffff_ffff, 0x8000_0000, 6 + EPOCHS_AHEAD_MAX]) {
        const far = new Dialer(session.identity, session.hello(0, epoch));
        const highest = await refused(t, 'HS-19', await prove(session, far), 'STALE_EPOCH', `epoch ${epoch} while epoch 5 lives`);
        t.check('HS-19', highest === 5, `the refusal names the highest epoch that was seen (${highest})`);
      }
      await session.stays('HS-19', first, 'an attempt with an epoch far above');
      const next = await session.connect(0, 6);
      await session.closes('HS-9', first, 'a newer epoch takes over');
      await session.stays('HS-19', next, 'the numbers are not used up');
    },
  },
  {
    name: 'epoch 0 and other claims that cannot be',
    group: 'handshake',
    needs,
    clauses: ['HS-1'],
    run: async (t) => {
      const session = await Session.begin(t);
      for (const change of [{ epoch: 0 }, { incarnation: 0.5 }, { incarnation: Number.NaN }, { incarnation: 2 ** 60 }]) {
        const dialer = new Dialer(session.identity, { ...session.hello(0, 1), ...change });
        const connection = await prove(session, dialer);
        const answer = await connection.next(t.config.limitMs);
        t.check('HS-1', answer.kind === 'closed', `HELLO with ${JSON.stringify(change)}: closed (${nameOf(answer)})`);
      }
      await stillWorks(session, 1);
    },
  },
  {
    name: 'HELLOs of wrong lengths',
    group: 'handshake',
    needs,
    clauses: ['HS-1'],
    run: async (t) => {
      const session = await Session.begin(t);
      const good = new Dialer(session.identity, session.hello(0, 1)).helloBody;
      const longer = new Uint8Array(good.length + 1);
      longer.set(good);
      for (const body of [good.slice(0, 89), good.slice(0, good.length - 1), longer, good.slice(0, 3)]) {
        const connection = await session.connection();
        connection.write(handshakeFrame(FRAME_HELLO, body));
        await closedSilently(t, 'HS-1', connection, `a HELLO of ${body.length} bytes`);
      }
    },
  },
  {
    name: 'frames out of turn in the handshake',
    group: 'handshake',
    needs,
    clauses: ['HS-2', 'HS-10', 'HS-1'],
    run: async (t) => {
      const session = await Session.begin(t);
      const dialer = new Dialer(session.identity, session.hello(0, 1));
      for (const kind of [FRAME_PROOF, FRAME_CHALLENGE, FRAME_WELCOME, 1, 3, 99]) {
        const connection = await session.connection();
        connection.write(handshakeFrame(kind, new Uint8Array(kind === FRAME_PROOF ? 32 : 0)));
        await closedSilently(t, 'HS-2', connection, `a first frame of kind ${kind}`);
      }
      const twice = await session.connection();
      await session.challenged(dialer, twice);
      twice.write(dialer.hello());
      await closedSilently(t, 'HS-2', twice, 'a second HELLO instead of PROOF');
      const short = await session.connection();
      const challenge = await session.challenged(dialer, short);
      short.write(handshakeFrame(FRAME_PROOF, dialer.proof(challenge).slice(40, 71)));
      await closedSilently(t, 'HS-2', short, 'a PROOF of 31 bytes');
      const hasty = await session.connection();
      const proof = dialer.proof(await session.challenged(dialer, hasty));
      const both = new Uint8Array(proof.length + 40);
      both.set(proof);
      both.set(handshakeFrame(3, new Uint8Array(0)), proof.length);
      hasty.write(both);
      const answer = await hasty.next(t.config.limitMs);
      t.check('HS-10', answer.kind === 'closed', `PROOF with a byte behind it: closed (${nameOf(answer)})`);
      await stillWorks(session, 2);
    },
  },
  {
    name: 'the handshake in single bytes',
    group: 'handshake',
    needs,
    clauses: ['FR-1'],
    run: async (t) => {
      const session = await Session.begin(t);
      const dialer = new Dialer(session.identity, session.hello(0, 1));
      const connection = await session.connection();
      await dribble(connection, dialer.hello());
      const answer = await connection.next(t.config.limitMs);
      t.must(
        'FR-1',
        answer.kind === 'frame' && answer.frame.header.kind === FRAME_CHALLENGE,
        `HELLO byte by byte is taken (${nameOf(answer)})`,
      );
      if (answer.kind !== 'frame') return;
      await dribble(connection, dialer.proof(answer.frame.packetHeader));
      const welcome = await connection.next(t.config.limitMs);
      t.check(
        'FR-1',
        welcome.kind === 'frame' && welcome.frame.header.kind === FRAME_WELCOME,
        `PROOF byte by byte is taken (${nameOf(welcome)})`,
      );
    },
  },
  {
    name: 'frames that are too long, or damaged, in the handshake',
    group: 'handshake',
    needs,
    clauses: ['LM-3', 'HS-4', 'FR-2', 'FR-3'],
    run: async (t) => {
      const session = await Session.begin(t);
      const hello = new Dialer(session.identity, session.hello(0, 1)).hello();
      const spoilt = async (clause: ClauseId, what: string, change: (bytes: Uint8Array, view: DataView) => Uint8Array) => {
        const bytes = hello.slice();
        const connection = await session.connection();
        connection.write(change(bytes, new DataView(bytes.buffer)));
        await closedSilently(t, clause, connection, what);
      };
      await spoilt('LM-3', 'a header that announces 473 bytes of body, and nothing else', (bytes, view) => {
        view.setUint16(4, 473, true);
        return bytes.slice(0, 40);
      });
      await spoilt('LM-3', 'a header that announces a payload, and nothing else', (bytes, view) => {
        view.setUint32(8, 1, true);
        return bytes.slice(0, 40);
      });
      await spoilt('FR-2', 'no frame at all: GET / HTTP/1.1', () => Buffer.from(`GET / HTTP/1.1\r\nHost: nobody\r\n\r\n${' '.repeat(40)}`));
      await spoilt('FR-3', 'a HELLO with a bit flipped in its body', (bytes) => {
        bytes[60] ^= 1;
        return bytes;
      });
      await spoilt('FR-3', 'a HELLO with a wrong CRC', (bytes) => {
        bytes[36] ^= 0x80;
        return bytes;
      });
      await stillWorks(session, 1);
    },
  },
  {
    name: 'handshakes that are not gone on with end in time',
    group: 'handshake',
    needs,
    clauses: ['HS-11', 'LM-4'],
    run: async (t) => {
      const session = await Session.begin(t);
      const mute = await session.connection();
      const half = await session.connection();
      const hello = new Dialer(session.identity, session.hello(0, 1)).hello();
      half.write(hello.slice(0, 50));
      const undecided = await session.connection();
      await session.challenged(new Dialer(session.identity, session.hello(0, 1)), undecided);
      const beganMs = performance.now();
      // Alive time and the granularity of timers are the endpoint's: it may take longer, but must come to an end.
      const [answer] = await Promise.all(
        [mute, half, undecided].map((connection) => connection.next(HANDSHAKE_MS_MAX * 2 + t.config.limitMs)),
      );
      const tookMs = performance.now() - beganMs;
      t.check(
        'HS-11',
        [mute, half, undecided].every(({ closed }) => closed),
        `all three are closed after ${Math.round(tookMs)} ms (${nameOf(answer)})`,
      );
      t.check('LM-4', tookMs > HANDSHAKE_MS_MAX / 2, `not before a slow dialer had its time (${Math.round(tookMs)} ms)`);
      await stillWorks(session, 1);
    },
  },
  {
    name: 'an attempt beside a live epoch that is given up',
    group: 'handshake',
    needs,
    clauses: ['HS-14'],
    run: async (t) => {
      const session = await Session.begin(t);
      const rail = await session.connect(0, 1);
      const beside = await session.connection();
      await session.challenged(new Dialer(session.identity, session.hello(0, 2)), beside);
      beside.close();
      await session.stays('HS-14', rail, 'an attempt that ends before PROOF');
      const { id, bytes } = rail.probeFrame();
      rail.write(bytes);
      t.check('HS-14', await session.until(() => rail.hasAnswered(id)), 'the live epoch goes on');
    },
  },
  {
    name: 'DATA right behind WELCOME, before any probe',
    group: 'handshake',
    needs: ['accept', 'receive'],
    clauses: ['HS-12', 'HS-13'],
    run: async (t) => {
      const session = await Session.begin(t);
      const request = await session.recv(ANY, 3, 100);
      const rail = await session.connect(0, 1, { ready: false, autoProbe: false });
      session.sendMatch(rail, 3, pattern(9, 0, 100));
      await session.received('HS-12', request, { tag: 3, data: pattern(9, 0, 100) }, 'a MATCH before any probe');
      await session.counted('HS-12', rail, 'a MATCH before any probe');
      // A rendezvous wants an answer, which must wait for the answer to the endpoint's probe.
      const large = await session.recv(ANY, 4, 5000);
      rail.send(session.rndv(5000, { tag: 4 }));
      await session.never('HS-13', PACKET.ACK, 'nothing is sent before the own probe is answered');
      const asked = rail.own.filter(({ kind }) => kind === 3).at(-1);
      t.must('HS-13', asked !== undefined, 'the endpoint probes a new epoch');
      rail.answer(asked?.frameNumber ?? 0);
      const ack = await session.expect('HS-13', PACKET.ACK, 'after the answer it sends');
      session.sendFrag(rail, ack, 0, 5000);
      await session.received('HS-13', large, { data: pattern(1, 0, 5000) }, 'the rendezvous');
    },
  },
  {
    name: 'the acceptor never dials',
    group: 'handshake',
    needs,
    clauses: ['AD-3'],
    run: async (t) => {
      const session = await Session.begin(t);
      const rail = await session.connect(0, 1);
      rail.drop();
      await sleep(t.config.quietMs * 5);
      t.check('AD-3', session.waitingConnections === 0, 'the higher rank waits to be dialled, after a loss too');
    },
  },
  {
    name: 'liveness connections',
    group: 'handshake',
    transport: 'tcp',
    needs: ['accept', 'liveness'],
    clauses: ['LV-1', 'LV-2', 'LV-3'],
    run: async (t) => {
      const session = await Session.begin(t);
      const rail = await session.connect(0, 4);
      const ask = async (number: number, change: { epoch?: number; rail?: number; rank?: number } = {}, key = rail.epochKey) => {
        const connection = await session.connection();
        connection.write(livenessFrame({ rank: session.rank, rail: 0, epoch: 4, number, ...change }, key));
        return connection;
      };
      const wrongKey = Uint8Array.from(rail.epochKey);
      wrongKey[0] ^= 1;
      await closedSilently(t, 'LV-2', await ask(1, {}, wrongKey), 'LIVENESS with a wrong MAC');
      for (const at of [24, 31, 32, 40, 55]) {
        const near = await session.connection();
        near.write(flipped(livenessFrame({ rank: session.rank, rail: 0, epoch: 4, number: 1 }, rail.epochKey), at));
        await closedSilently(t, 'LV-2', near, `LIVENESS of whose MAC byte ${at - 24} is wrong`);
      }
      await closedSilently(t, 'LV-2', await ask(1, { epoch: 3 }), 'LIVENESS of an epoch that is not live');
      await closedSilently(t, 'LV-2', await ask(1, { rail: 7 }), 'LIVENESS of an unknown rail');
      const welcomed = async (connection: HandshakeConnection, what: string) => {
        const answer = await connection.next(t.config.limitMs);
        t.must('LV-1', answer.kind === 'frame' && answer.frame.header.kind === FRAME_WELCOME, `${what} is welcome (${nameOf(answer)})`);
      };
      const first = await ask(10);
      await welcomed(first, 'LIVENESS with a right MAC');
      first.write(new Uint8Array([1, 2, 3]));
      await closedSilently(t, 'LV-2', await ask(10), 'the same number again');
      await closedSilently(t, 'LV-2', await ask(9), 'a lower number');
      const second = await ask(11);
      await welcomed(second, 'a later number');
      second.close();
      await session.stays('LV-3', rail, 'the loss of the liveness connection');
      const third = await ask(12);
      await welcomed(third, 'another one after the loss');
      rail.drop();
      // Beats may come before; they are single bytes and no frames.
      for (let waitedMs = 0; !third.closed && waitedMs < t.config.limitMs; waitedMs += 5) await sleep(5);
      t.check('LV-3', third.closed, "the epoch's end closes it");
      await closedSilently(t, 'LV-2', await ask(13), 'LIVENESS after the end of the epoch');
      const short = await session.connection();
      short.write(handshakeFrame(FRAME_LIVENESS, new Uint8Array(55)));
      await closedSilently(t, 'LV-2', short, 'a LIVENESS of 55 bytes');
    },
  },
];
