// Cases of §4 with the roles reversed: the endpoint is the lower rank and dials.
import { createHash } from 'node:crypto';
import { FRAME_WELCOME } from '../../../src/btl/base/frame-hdr.ts';
import { handshakeFrame, PROTOCOL_VERSION, type Refusal, refuseFrame } from '../../../src/btl/base/handshake.ts';
import { PACKET } from '../../../src/pml/hdr.ts';
import type { Case, CaseContext } from '../case.ts';
import type { Feature } from '../convention.ts';
import { challengeFrame, type HandshakeConnection, makeChallenge } from '../handshake.ts';
import { pattern } from '../pattern.ts';
import { ANY, Session } from '../session.ts';
import type { SessionOptions } from '../session-options.ts';
import { standingBytes } from './handshake.ts';

const needs: readonly Feature[] = ['dial'];
/** How far above its own a dialer believes an epoch to be, and how many attempts it may begin beside those that are looked at. */
const EPOCHS_AHEAD_MAX = 2 ** 20;
const EPOCHS_BETWEEN = 20;

const begin = (t: CaseContext, options: SessionOptions = {}): Promise<Session> => Session.begin(t, { role: 'dial', ...options });

/** So often a rail is dialled in vain; pauses grow, and after so many lie between these two whatever the parameters of an implementation. */
const ATTEMPTS = 12;
const ATTEMPTS_UNTIL_GROWN = 6;
const PAUSE_MS_MIN = 15;
const PAUSE_MS_MAX = 5000;

/** The dialer must go without having said anything more. */
async function leaves(t: CaseContext, connection: HandshakeConnection, what: string): Promise<void> {
  const answer = await connection.next(t.config.limitMs);
  t.check(
    'DL-2',
    answer.kind === 'closed',
    `${what}: the dialer leaves and proves nothing (${answer.kind === 'frame' ? `kind ${answer.frame.header.kind}` : answer.kind})`,
  );
}

export const DIALLING_CASES: readonly Case[] = [
  {
    name: 'HELLO',
    group: 'dialling',
    transport: 'tcp',
    needs,
    clauses: ['DL-1', 'HS-4', 'HS-17', 'HS-3', 'HS-13'],
    run: async (t) => {
      const session = await begin(t);
      const first = await session.accepted('DL-1');
      const { hello } = first;
      const { start, keys, endpointRank } = session;
      t.check('DL-1', hello.version === PROTOCOL_VERSION, `version ${hello.version}`);
      t.check('DL-1', hello.rank === endpointRank && hello.incarnation === start.incarnation, 'rank and incarnation');
      t.check('DL-1', hello.rail === 0 && hello.key === keys[0], `rail ${hello.rail} with key ${hello.key}`);
      t.check('DL-1', hello.epoch >= 1, `epoch ${hello.epoch}`);
      const digest = createHash('sha256').update(`multirail job ${start.jobId}`).digest();
      t.check('DL-1', digest.equals(hello.jobDigest), 'the digest of the job');
      first.connection.close();
      const drawn = [Uint8Array.from(hello.nonce)];
      for (let i = 0; i < 6; i++) {
        const { connection, hello: more } = await session.accepted('DL-1');
        drawn.push(Uint8Array.from(more.nonce));
        connection.close();
      }
      const second = await session.accepted('DL-1');
      drawn.push(Uint8Array.from(second.hello.nonce));
      t.check('HS-17', !Buffer.from(hello.nonce).equals(second.hello.nonce), 'a fresh nonce in every attempt');
      const standing = standingBytes(drawn);
      t.check('HS-17', standing.length === 0, `bytes of the nonce that are the same in 8 HELLOs: ${standing.join(', ') || 'no'}`);
      await session.proved(second.connection, second.helloBody);
      second.connection.close();
      const rail = await session.accept();
      await session.stays('HS-13', rail, 'after WELCOME');
    },
  },
  {
    name: 'several rails are dialled, each with its key',
    group: 'dialling',
    transport: 'tcp',
    needs,
    clauses: ['DL-1', 'AD-2'],
    run: async (t) => {
      const session = await begin(t, { links: 3 });
      const seen = new Map<number, string>();
      for (let i = 0; i < 12 && seen.size < 3; i++) {
        const { connection, hello } = await session.accepted('DL-1');
        seen.set(hello.rail, hello.key);
        connection.close();
      }
      const rails = [...seen].sort((a, b) => a[0] - b[0]).map(([rail, key]) => `${rail}=${key}`);
      t.check('AD-2', rails.join() === session.keys.map((key, i) => `${i}=${key}`).join(), `rails ${rails.join(', ')}`);
      t.check('DL-1', true, 'each has its HELLO');
    },
  },
  {
    name: 'an acceptor that does not know the secret',
    group: 'dialling',
    transport: 'tcp',
    needs,
    clauses: ['DL-2', 'DL-6'],
    run: async (t) => {
      const session = await begin(t);
      const stranger = { ...session.identity, secret: new Uint8Array(32).fill(9) };
      const first = await session.accepted('DL-1');
      first.connection.write(challengeFrame(makeChallenge(stranger, first.helloBody)));
      await leaves(t, first.connection, 'a CHALLENGE with the MAC of another secret');
      const second = await session.accepted('DL-6');
      t.check(
        'DL-6',
        second.hello.epoch > first.hello.epoch,
        `the next attempt has a higher epoch (${first.hello.epoch}, ${second.hello.epoch})`,
      );
      const reflected = makeChallenge(session.identity, second.helloBody);
      reflected[50] ^= 1;
      second.connection.write(challengeFrame(reflected));
      await leaves(t, second.connection, 'a CHALLENGE with one bit of the MAC flipped');
      const third = await session.accepted('DL-6');
      third.connection.write(challengeFrame(makeChallenge({ ...session.identity, rank: 7 }, third.helloBody)));
      await leaves(t, third.connection, 'another rank that knows the secret');
      const fourth = await session.accepted('DL-6');
      fourth.connection.write(handshakeFrame(FRAME_WELCOME, new Uint8Array(0)));
      await leaves(t, fourth.connection, 'WELCOME without a CHALLENGE');
      const rail = await session.accept('DL-2');
      await session.stays('DL-2', rail, 'a right one afterwards');
    },
  },
  {
    name: 'refusals before the proof',
    group: 'dialling',
    transport: 'tcp',
    needs: [...needs, 'receive'],
    clauses: ['DL-3', 'DL-6'],
    run: async (t) => {
      const session = await begin(t);
      const request = await session.recv(ANY, 1, 64);
      let epoch = 0;
      for (const reason of ['PEER_FAILED', 'FINALIZED', 'STALE_EPOCH', 'BAD_VERSION', 'BAD_JOB'] as Refusal[]) {
        const { connection, hello } = await session.accepted('DL-3');
        t.check('DL-6', hello.epoch > epoch, `the epoch of the next attempt is higher (${epoch}, ${hello.epoch})`);
        t.check('DL-3', hello.epoch < 1000, `STALE_EPOCH of a stranger is not believed (${hello.epoch})`);
        epoch = hello.epoch;
        connection.write(refuseFrame(reason, 'said before any proof', 1_000_000));
        connection.stream.end();
      }
      const rail = await session.accept('DL-3');
      t.check('DL-3', rail.epoch < 1000, `STALE_EPOCH of a stranger is not believed (${rail.epoch})`);
      await session.notDone('DL-3', request, 'PEER_FAILED of a stranger');
      session.sendMatch(rail, 1, pattern(1, 0, 20));
      await session.received('DL-3', request, { data: pattern(1, 0, 20) }, 'a message afterwards');
    },
  },
  {
    name: 'STALE_EPOCH and refusals that pass',
    group: 'dialling',
    transport: 'tcp',
    needs,
    clauses: ['DL-4', 'DL-6'],
    run: async (t) => {
      const session = await begin(t);
      const refuse = async (reason: Refusal, highest = 0): Promise<number> => {
        const { connection, helloBody, hello } = await session.accepted('DL-6');
        await session.proved(connection, helloBody);
        connection.write(refuseFrame(reason, 'for a test', highest));
        connection.stream.end();
        return hello.epoch;
      };
      let before = await refuse('STALE_EPOCH', 500);
      let next = await refuse('STALE_EPOCH', 70_000);
      t.check('DL-4', next > 500, `after STALE_EPOCH 500 the epoch is ${next}`);
      before = next;
      next = await refuse('UNAVAILABLE');
      t.check('DL-4', next > 70_000, `after STALE_EPOCH 70000 the epoch is ${next}`);
      for (const reason of ['UNKNOWN_RANK', 'OLD_INCARNATION', 'RAIL_MISMATCH', 'ROUTE', 'BAD_JOB'] as Refusal[]) {
        before = next;
        next = await refuse(reason);
        t.check('DL-6', next > before, `${reason}: tries again later, with a higher epoch (${before}, ${next})`);
      }
      const rail = await session.accept('DL-4');
      await session.stays('DL-4', rail, 'a WELCOME in the end');
    },
  },
  {
    name: 'STALE_EPOCH with numbers far above and far below',
    group: 'dialling',
    transport: 'tcp',
    needs,
    clauses: ['DL-9', 'DL-10'],
    run: async (t) => {
      const session = await begin(t);
      const refuse = async (highest: number): Promise<number> => {
        const { connection, helloBody, hello } = await session.accepted('DL-9');
        await session.proved(connection, helloBody);
        connection.write(refuseFrame('STALE_EPOCH', 'for a test', highest));
        connection.stream.end();
        return hello.epoch;
      };
      const first = await refuse(0xffff_ffff);
      const second = await refuse(0xffff_ffff);
      t.check('DL-9', second > first && second <= first + EPOCHS_AHEAD_MAX + EPOCHS_BETWEEN, `after epoch ${first} comes ${second}`);
      const third = await refuse(40);
      t.check('DL-9', third > second && third <= second + EPOCHS_AHEAD_MAX + EPOCHS_BETWEEN, `after epoch ${second} comes ${third}`);
      const rail = await session.accept('DL-10');
      t.check('DL-10', rail.epoch > 40 && rail.epoch <= 40 + EPOCHS_BETWEEN, `after STALE_EPOCH 40 the epoch is ${rail.epoch}`);
      await session.stays('DL-10', rail, 'a WELCOME in the end');
    },
  },
  {
    name: 'a rail that does not come up is dialled again and again, with pauses',
    group: 'dialling',
    transport: 'tcp',
    needs,
    clauses: ['RE-2', 'DL-7'],
    run: async (t) => {
      const session = await begin(t);
      // A pause begins when the attempt has failed. A busy machine makes it longer, and none shorter.
      let shortestMs = Number.POSITIVE_INFINITY;
      let closedMs = 0;
      for (let i = 0; i < ATTEMPTS; i++) {
        const { connection } = await session.accepted('RE-2', Math.max(t.config.limitMs, PAUSE_MS_MAX));
        if (i >= ATTEMPTS_UNTIL_GROWN) shortestMs = Math.min(shortestMs, performance.now() - closedMs);
        connection.close();
        closedMs = performance.now();
      }
      t.check('RE-2', shortestMs > PAUSE_MS_MIN, `${ATTEMPTS} attempts, the shortest pause of the last ones ${Math.round(shortestMs)} ms`);
      const rail = await session.accept('DL-7');
      await session.stays('DL-7', rail, 'the attempt that is answered at last');
    },
  },
  {
    name: 'one rail is lost while another lives',
    group: 'dialling',
    transport: 'tcp',
    needs,
    clauses: ['RE-3', 'DL-7'],
    run: async (t) => {
      const session = await begin(t, { links: 2 });
      const rails = [await session.accept(), await session.accept()];
      await session.settle();
      rails[0].drop();
      const again = await session.accept('RE-3');
      t.check('RE-3', again.index === rails[0].index, `the lost rail is dialled (rail ${again.index})`);
      await session.stays('DL-7', rails[1], 'the other one');
    },
  },
  {
    name: 'PEER_FAILED after the proof',
    group: 'dialling',
    transport: 'tcp',
    needs: [...needs, 'receive'],
    clauses: ['DL-5'],
    run: async (t) => {
      const session = await begin(t);
      const request = await session.recv(session.rank, 1, 64);
      const { connection, helloBody } = await session.accepted('DL-5');
      await session.proved(connection, helloBody);
      connection.write(refuseFrame('PEER_FAILED', 'you are dead'));
      connection.stream.end();
      const state = await session.done('DL-5', request, 'a receive from that peer');
      t.check('DL-5', state.error === 'ERR_PROC_FAILED', `it ends with ERR_PROC_FAILED (${state.error})`);
    },
  },
  {
    name: 'a lost rail is dialled again, and used after its probe',
    group: 'dialling',
    transport: 'tcp',
    needs: [...needs, 'receive', 'send'],
    clauses: ['DL-7', 'DL-6', 'HS-13', 'SD-6', 'RE-3'],
    run: async (t) => {
      const session = await begin(t);
      let rail = await session.accept();
      for (let round = 0; round < 3; round++) {
        const request = await session.recv(ANY, round, 100);
        session.sendMatch(rail, round, pattern(round, 0, 100));
        await session.received('DL-7', request, { data: pattern(round, 0, 100) }, `round ${round}`);
        rail.autoCount = false;
        await session.sendFrom(200, { tag: round, seed: round });
        await session.expect('RV-1', PACKET.MATCH, `a message in round ${round}`);
        const { epoch } = rail;
        rail.drop();
        rail = await session.accept('RE-3');
        t.check('RE-3', true, 'a lost rail is dialled again');
        t.check('DL-6', rail.epoch > epoch, `the new epoch is above the last one (${epoch}, ${rail.epoch})`);
        const again = await session.expect('SD-6', PACKET.MATCH, 'what was in doubt comes over the new epoch');
        t.check('HS-13', again.rail === rail, 'after the probe');
        t.check('SD-6', again.packet.seq === round, `with its number (${again.packet.seq})`);
      }
    },
  },
];
