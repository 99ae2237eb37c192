// Cases of §12: BYE, what it ends, and what follows it; and §5: WebSocket rails.
import { FRAME_BYE, FRAME_NACK } from '../../../src/btl/base/frame-hdr.ts';
import { PACKET } from '../../../src/pml/hdr.ts';
import type { Case } from '../case.ts';
import type { ClauseId } from '../clauses.ts';
import type { Feature } from '../convention.ts';
import { pattern } from '../pattern.ts';
import type { Rail } from '../rail.ts';
import { ANY, Session, sleep } from '../session.ts';
import { askUpgrade, WS_MESSAGE_BYTES_MAX } from '../wire.ts';

const needs: readonly Feature[] = ['accept', 'receive', 'leave'];

async function saysBye(session: Session, clause: ClauseId, rail: Rail, what: string): Promise<void> {
  await session.until(() => rail.byeReceived || rail.closed);
  session.t.must(clause, rail.byeReceived, `${what}: BYE comes on rail ${rail.index}, epoch ${rail.epoch}`);
}

async function hasLeft(session: Session): Promise<boolean> {
  const deadline = performance.now() + session.t.config.limitMs;
  for (;;) {
    const { left } = await session.t.control.run('left', {});
    if (left || performance.now() > deadline) return left;
    await sleep(5);
  }
}

export const END_CASES: readonly Case[] = [
  {
    name: 'a good end',
    group: 'end',
    transport: 'tcp',
    needs,
    clauses: ['BY-1', 'BY-4', 'BY-6', 'CN-5'],
    run: async (t) => {
      const session = await Session.begin(t, { links: 2 });
      const rails = [await session.connect(0, 1), await session.connect(1, 1)];
      const request = await session.recv(ANY, 1, 100);
      session.sendMatch(rails[0], 1, pattern(1, 0, 100));
      await session.received('RV-1', request, { data: pattern(1, 0, 100) }, 'a message before the end');
      await t.control.run('finalize', {});
      for (const rail of rails) await saysBye(session, 'BY-1', rail, 'a rank that leaves');
      t.check('BY-1', !(await t.control.run('left', {})).left, "it stays until the peer's BYE");
      for (const rail of rails) {
        rail.bye();
        await session.until(() => rail.peerCount === rail.sentFrames || rail.closed);
        t.check('BY-4', rail.peerCount === rail.sentFrames, `our BYE on rail ${rail.index} is counted`);
        t.check('BY-4', await session.until(() => rail.closed), `rail ${rail.index} is closed after BYE both ways`);
      }
      t.check('BY-4', await hasLeft(session), 'it has left');
      t.check('CN-5', true, 'BYE is counted at once');
      const answer = await session.tryConnect(0, 2);
      t.check('BY-6', answer === 'FINALIZED', `whoever dials then is refused with FINALIZED (${answer})`);
    },
  },
  {
    name: 'the peer leaves first',
    group: 'end',
    needs: [...needs, 'send'],
    clauses: ['BY-2', 'BY-3', 'BY-4'],
    run: async (t) => {
      const session = await Session.begin(t);
      const rail = await session.connect(0, 1);
      const posted = await session.recv(session.rank, 1, 100);
      const waiting = await session.recv(session.rank, 2, 100);
      session.sendMatch(rail, 2, pattern(2, 0, 50));
      await session.received('RV-1', waiting, { data: pattern(2, 0, 50) }, 'a message before BYE');
      session.sendMatch(rail, 3, pattern(3, 0, 60));
      const unanswered = await session.sendFrom(30_000);
      await session.expect('SD-2', PACKET.RNDV, 'a rendezvous');
      rail.autoCount = false;
      const eager = await session.sendFrom(100);
      await session.expect('RV-1', PACKET.MATCH, 'an eager message that is not counted');
      rail.bye();
      const state = await session.done('BY-2', posted, 'a receive that cannot match any more');
      t.check('BY-2', state.error === 'ERR_PROC_FAILED', `it ends with ERR_PROC_FAILED (${state.error})`);
      const never = await session.done('BY-2', unanswered, 'a rendezvous that was never answered');
      t.check('BY-2', never.error === 'ERR_PROC_FAILED', `it ends with ERR_PROC_FAILED (${never.error})`);
      const done = await session.done('BY-3', eager, 'an eager message');
      t.check('BY-3', done.error === undefined, `it is done (${done.error})`);
      const late = await session.recv(session.rank, 3, 100);
      await session.received('BY-2', late, { data: pattern(3, 0, 60) }, 'a message that came before BYE is still received');
      await t.control.run('finalize', {});
      await saysBye(session, 'BY-4', rail, 'then it leaves too');
      rail.count();
      t.check('BY-4', await session.until(() => rail.closed), 'the rail is closed after BYE both ways');
      t.check('BY-4', await hasLeft(session), 'it has left');
    },
  },
  {
    name: 'fragments that are not counted when the peer leaves',
    group: 'end',
    needs: [...needs, 'send'],
    clauses: ['BY-3'],
    run: async (t) => {
      const session = await Session.begin(t);
      const rail = await session.connect(0, 1);
      const request = await session.sendFrom(30_000);
      const rndv = await session.expect('SD-2', PACKET.RNDV, 'a rendezvous');
      rail.autoCount = false;
      rail.send(session.ack(rndv, 30_000));
      await session.expect('SD-3', PACKET.FRAG, 'its fragments');
      await session.settle();
      await session.notDone('SD-5', request, 'before they are counted');
      // They lie on a rail: their memory is free when that has ended, or has counted them.
      rail.bye();
      rail.count();
      const state = await session.done('BY-3', request, 'the send');
      t.check('BY-3', state.error === undefined, `a peer that said BYE had it all (${state.error})`);
    },
  },
  {
    name: 'fragments in doubt when the peer has left',
    group: 'end',
    needs: [...needs, 'send'],
    clauses: ['BY-3'],
    run: async (t) => {
      const session = await Session.begin(t);
      const rail = await session.connect(0, 1);
      const request = await session.sendFrom(30_000);
      const rndv = await session.expect('SD-2', PACKET.RNDV, 'a rendezvous');
      rail.autoCount = false;
      rail.send(session.ack(rndv, 30_000));
      await session.expect('SD-3', PACKET.FRAG, 'its fragments');
      rail.bye();
      await session.settle();
      rail.drop();
      const state = await session.done('BY-3', request, 'the send');
      t.check('BY-3', state.error === undefined, `a peer that said BYE wants no restart (${state.error})`);
    },
  },
  {
    name: 'a rank leaves when nothing is owed',
    group: 'end',
    needs: [...needs, 'send'],
    clauses: ['BY-7', 'BY-1'],
    run: async (t) => {
      const session = await Session.begin(t);
      const rail = await session.connect(0, 1);
      const request = await session.recv(ANY, 1, 9000);
      const { ack } = await session.rendezvous(rail, 1, 9000);
      await session.sendFrom(20_000);
      const rndv = await session.expect('SD-2', PACKET.RNDV, 'a rendezvous of its own');
      rail.autoCount = false;
      await t.control.run('finalize', {});
      await session.settle();
      t.check('BY-7', !rail.byeReceived, 'no BYE while messages are open both ways');
      session.sendFrag(rail, ack, 0, 9000);
      await session.received('RV-3', request, { data: pattern(1, 0, 9000) }, 'the one');
      await session.settle();
      t.check('BY-7', !rail.byeReceived, 'no BYE while its own is not taken');
      rail.send(session.ack(rndv, 20_000));
      await session.expect('SD-3', PACKET.FRAG, 'its fragments');
      await session.settle();
      t.check('BY-7', !rail.byeReceived, 'no BYE while its own is not counted');
      rail.count();
      await saysBye(session, 'BY-7', rail, 'when all is counted');
      const frames = rail.receivedFrames;
      await session.settle();
      t.check('BY-1', rail.receivedFrames === frames, 'no packet comes after BYE');
    },
  },
  {
    name: 'BYE that was not counted is said again',
    group: 'end',
    needs,
    clauses: ['BY-5', 'BY-1'],
    run: async (t) => {
      const session = await Session.begin(t);
      const rail = await session.connect(0, 1);
      rail.autoCount = false;
      await t.control.run('finalize', {});
      await saysBye(session, 'BY-1', rail, 'a rank that leaves');
      const next = await session.reconnect(rail, false);
      await saysBye(session, 'BY-5', next, 'a new epoch');
      // Ours came; theirs was not counted: the rail is lost, and not ended.
      next.bye();
      await session.counted('BY-4', next, 'our BYE');
      const third = await session.reconnect(next);
      await saysBye(session, 'BY-5', third, 'a third epoch, after BYE both ways of which one was not counted');
      third.bye();
      t.check('BY-4', await session.until(() => third.closed), 'the third is closed in good order');
      t.check('BY-5', await hasLeft(session), 'it has left');
    },
  },
  {
    name: 'frames after BYE',
    group: 'end',
    needs,
    clauses: ['CN-2', 'BY-2'],
    run: async (t) => {
      const session = await Session.begin(t);
      const rail = await session.connect(0, 1);
      rail.bye();
      await session.counted('BY-4', rail, 'BYE');
      const { id, bytes } = rail.probeFrame();
      rail.write(bytes);
      t.check('CN-2', await session.until(() => rail.hasAnswered(id)), 'a PROBE after BYE is answered: it is not counted');
      rail.send(session.match({ tag: 1 }), pattern(1, 0, 10));
      await session.closes('CN-2', rail, 'a MATCH after BYE');
      const state = await session.done('BY-2', await session.recv(session.rank, 1, 10), 'a receive after BYE');
      t.check('BY-2', state.error === 'ERR_PROC_FAILED', `nothing of it was taken (${state.error})`);
    },
  },
  {
    name: 'BYE twice, and a NACK of BYE',
    group: 'end',
    needs,
    clauses: ['CN-2', 'NK-3'],
    run: async (t) => {
      const session = await Session.begin(t);
      const rail = await session.connect(0, 1);
      rail.write(rail.frame({ kind: FRAME_BYE }));
      rail.write(rail.frame({ kind: FRAME_BYE }));
      await session.closes('CN-2', rail, 'two BYEs');
      const next = await session.connect(0, 2, { autoCount: false });
      await t.control.run('finalize', {});
      await saysBye(session, 'BY-1', next, 'a rank that leaves');
      next.write(next.frame({ kind: FRAME_NACK, frameNumber: next.receivedFrames }));
      await session.closes('NK-3', next, 'NACK of a BYE');
    },
  },
  {
    name: 'WebSocket messages',
    group: 'websocket',
    transport: 'ws',
    needs: ['accept', 'receive'],
    clauses: ['WS-1', 'WS-2', 'WS-5'],
    run: async (t) => {
      const session = await Session.begin(t);
      const rail = await session.connect(0, 1);
      const [a, b] = [await session.recv(ANY, 1, 64), await session.recv(ANY, 2, 64)];
      const bytes = Buffer.concat([
        rail.packetFrame(session.match({ tag: 1 }), pattern(1, 0, 30)),
        rail.packetFrame(session.match({ tag: 2 }), pattern(2, 0, 40)),
      ]);
      // Borders in the middle of headers and payloads, and messages without bytes.
      for (const [from, to] of [
        [0, 3],
        [3, 3],
        [3, 90],
        [90, 120],
        [120, bytes.length],
      ])
        rail.write(bytes.subarray(from, to));
      await session.received('WS-1', a, { data: pattern(1, 0, 30) }, 'the first message');
      await session.received('WS-1', b, { data: pattern(2, 0, 40) }, 'the second one');
      rail.stream.writeText?.('a text');
      await session.closes('WS-2', rail, 'a text message');
      const next = await session.connect(0, 2);
      await session.stays('WS-2', next, 'a new epoch');
      // Sound frames, all of them: only the length of the message is wrong.
      const { length } = next.probeFrame().bytes;
      const most = Math.floor(WS_MESSAGE_BYTES_MAX / length);
      const probes = (count: number) => Buffer.concat(Array.from({ length: count }, () => next.probeFrame().bytes));
      next.writeWhole(probes(most));
      await session.stays('WS-5', next, `a message of ${most * length} bytes`);
      next.writeWhole(probes(most + 1));
      await session.closes('WS-5', next, `a message of ${(most + 1) * length} bytes`);
    },
  },
  {
    name: 'upgrades that are refused',
    group: 'websocket',
    transport: 'ws',
    needs: ['accept'],
    clauses: ['WS-3', 'WS-4', 'WS-6'],
    run: async (t) => {
      const session = await Session.begin(t);
      const { host, port } = session.target();
      const ask = (change: { path?: string; version?: string; protocols?: string }) =>
        askUpgrade(host, port, { path: '/multirail', version: '13', ...change }, t.config.limitMs);
      for (const version of ['8', '12', '14']) {
        const head = await ask({ version });
        t.check('WS-3', /^HTTP\/1\.1 426 /.test(head), `version ${version} is answered by 426: ${head.split('\r\n')[0] || 'no answer'}`);
        t.check('WS-3', /^sec-websocket-version: *13\r?$/im.test(head), `version ${version}: the answer names version 13`);
      }
      for (const path of ['/', '/multirail/', '/multirail2', '/multirail?x=1']) {
        const head = await ask({ path });
        t.check('WS-4', !/^HTTP\/1\.1 101 /.test(head), `GET ${path} is not upgraded: ${head.split('\r\n')[0] || 'closed'}`);
      }
      const offered = await ask({ protocols: 'multirail, chat' });
      t.check('WS-4', /^HTTP\/1\.1 101 /.test(offered), `the right path and version are upgraded: ${offered.split('\r\n')[0] || 'closed'}`);
      t.check('WS-6', !/^sec-websocket-protocol:/im.test(offered), 'no subprotocol is named in the answer');
      const rail = await session.connect(0, 1);
      await session.stays('WS-3', rail, 'a good connection afterwards');
    },
  },
];
