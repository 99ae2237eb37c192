// Method: the production endpoint and module on both sides, over streams in memory and a clock that the test turns, so that
// every byte can be held, changed or lost at a chosen place.
import { describe, expect, test } from 'vitest';
import { BUSY, DOWN, OK } from '../../../src/btl/btl.ts';
import { MultirailError } from '../../../src/errors.ts';
import { frameOf, MemoryPair, mustSend } from '../../support/harness.ts';
import { pattern } from '../../support/pattern.ts';

describe('a live rail', () => {
  test('delivers in order, places payloads, and completes after the upcall', () => {
    const pair = new MemoryPair();
    pair.connect();
    const [a] = pair.ends;
    const small = pattern(100, 3);
    const large = pattern(200_000, 5);
    const got: Uint8Array[] = [];
    pair.up[1].onFrameDo = (_header, payload, sink) => got.push(sink ? sink.views[0].slice() : payload.slice());
    mustSend(a, frameOf(24));
    mustSend(a, frameOf(24, [small.subarray(0, 40), small.subarray(40)]));
    mustSend(a, frameOf(24, [large], { placed: true, prompt: true }));
    a.flush();
    expect(pair.streams()[0].writes).toBe(3); // HELLO, PROOF, one flush
    pair.settle();
    expect(pair.up[1].take()).toEqual(['frame 24 0', 'frame 24 100', 'sinkFor 200000', 'frame 24 0 placed']);
    expect(Buffer.compare(got[1], small)).toBe(0);
    expect(Buffer.compare(got[2], large)).toBe(0);
    expect(pair.up[0].take()).toEqual(['completed 1 delivered', 'completed 2 delivered', 'completed 3 delivered']);
    expect(a.outstandingBytes).toBe(0);
    expect(a.counters.bytesSent).toBe(pair.ends[1].counters.bytesReceived);
  });

  test('a prompt frame is counted at the end of the turn, another one after the delay', () => {
    const pair = new MemoryPair({ btl_base_ack_delay_ms: '10' });
    pair.connect();
    const [mine, theirs] = pair.streams();
    const writes = theirs.writes;
    mustSend(pair.ends[0], frameOf(8));
    pair.ends[0].flush();
    mine.deliver();
    pair.turn(1);
    expect(theirs.writes).toBe(writes);
    expect(pair.modules[1].nextDeadline()).toBe(pair.now + 10);
    pair.turn(1, 10);
    expect(theirs.writes).toBe(writes + 1);
    mustSend(pair.ends[0], frameOf(8, [], { prompt: true }));
    pair.ends[0].flush();
    mine.deliver();
    pair.turn(1);
    expect(theirs.writes).toBe(writes + 2);
  });

  test('the count is reported after enough frames, and rides on reverse traffic', () => {
    const pair = new MemoryPair({ btl_base_ack_frames: '4', btl_base_ack_delay_ms: '1000' });
    pair.connect();
    const [mine, theirs] = pair.streams();
    for (let i = 0; i < 4; i++) mustSend(pair.ends[0], frameOf(8));
    pair.ends[0].flush();
    mine.deliver();
    pair.turn(1);
    theirs.deliver();
    pair.turn(0);
    expect(pair.up[0].take()).toHaveLength(4);
    mustSend(pair.ends[0], frameOf(8));
    pair.ends[0].flush();
    mine.deliver();
    pair.turn(1);
    mustSend(pair.ends[1], frameOf(8));
    pair.ends[1].flush();
    theirs.deliver();
    pair.turn(0);
    expect(pair.up[0].take()).toEqual(['completed 5 delivered', 'frame 8 0']);
  });

  test('the window: one frame always, then BUSY until counted; control frames have a reserve', () => {
    const pair = new MemoryPair();
    pair.connect();
    const [a] = pair.ends;
    a.windowBytes = 1000;
    expect(a.send(frameOf(8, [pattern(5000)]))).toBe(OK);
    expect(a.send(frameOf(8, [pattern(1)]))).toBe(BUSY);
    expect(a.send(frameOf(8))).toBe(OK);
    let control = 0;
    while (a.send(frameOf(4096)) === OK) control++;
    expect(control).toBeGreaterThan(55);
    expect(control).toBeLessThan(65);
    expect(a.outstandingBytes).toBeLessThanOrEqual(1000 + 256 * 1024);
    a.flush();
    pair.settle();
    const events = pair.up[0].take();
    expect(events.filter((event) => event === 'writable').length).toBeGreaterThanOrEqual(1);
    expect(a.outstandingBytes).toBe(0);
    expect(a.send(frameOf(8, [pattern(1)]))).toBe(OK);
  });

  test('raising the window makes the rail writable in the next progress()', () => {
    const pair = new MemoryPair();
    pair.connect();
    const [a] = pair.ends;
    a.windowBytes = 100;
    mustSend(a, frameOf(8, [pattern(50)]));
    expect(a.send(frameOf(8, [pattern(60)]))).toBe(BUSY);
    pair.turn(0);
    expect(pair.up[0].take()).toEqual([]);
    a.windowBytes = 1000;
    expect(pair.modules[0].nextDeadline()).toBe(0);
    pair.turn(0);
    expect(pair.up[0].take()).toEqual(['writable']);
  });

  test('a probe is answered with fresh bytes and alive time', () => {
    const pair = new MemoryPair();
    pair.connect();
    pair.ends[0].probe(77);
    pair.ends[0].flush();
    pair.settle(3);
    expect(pair.up[0].take()).toEqual(['probeAnswered 1 77']);
    const report = pair.up[0].reports[pair.up[0].reports.length - 1];
    expect(report.receivedBytes).toBe(40);
    expect(report.peerAliveMs).toBeGreaterThanOrEqual(1000);
  });

  test('while a large frame comes in slowly, its bytes are reported', () => {
    const pair = new MemoryPair();
    pair.connect();
    mustSend(pair.ends[0], frameOf(8, [pattern(100_000)], { placed: true }));
    pair.ends[0].flush();
    const [mine, theirs] = pair.streams();
    const before = theirs.writes;
    for (let i = 0; i < 10; i++) {
      mine.deliver(1000);
      pair.turn(1, 20);
    }
    expect(theirs.writes - before).toBeGreaterThanOrEqual(3);
    theirs.deliver();
    pair.turn(0);
    expect(pair.up[0].reports.at(-1)?.receivedBytes).toBeGreaterThan(5000);
    expect(pair.up[0].take()).toEqual([]);
  });
});

describe('the end of an epoch', () => {
  test('railDown first, then what is in doubt, in order; then nothing', () => {
    const pair = new MemoryPair();
    pair.connect();
    for (let i = 0; i < 3; i++) mustSend(pair.ends[0], frameOf(8));
    pair.streams()[0].closed({ kind: 'closed', text: 'reset' });
    pair.turn(0);
    expect(pair.up[0].take()).toEqual(['down 1 closed', 'completed 1 inDoubt', 'completed 2 inDoubt', 'completed 3 inDoubt']);
    expect(pair.ends[0].send(frameOf(8))).toBe(DOWN);
    expect(pair.ends[0].epoch).toBe(0);
    pair.settle();
    expect(pair.up[0].take()).toEqual([]);
  });

  test('fence: no byte lands in a half-received sink, upcalls follow in the next progress()', () => {
    const pair = new MemoryPair();
    pair.connect();
    mustSend(pair.ends[1], frameOf(8));
    mustSend(pair.ends[0], frameOf(8, [pattern(10_000)], { placed: true }));
    pair.ends[0].flush();
    const [mine] = pair.streams();
    mine.deliver(5000);
    pair.turn(1);
    const before = pair.up[1].sinks[0].views[0].slice();
    expect(before[4000]).not.toBe(0);
    pair.up[1].take();
    mine.deliver(1000); // waits in the stream when the fence comes
    pair.ends[1].fence(1, { kind: 'fenced', text: 'test' });
    expect(pair.up[1].take()).toEqual([]);
    expect(pair.ends[1].epoch).toBe(0);
    expect(pair.modules[1].nextDeadline()).toBe(0);
    mine.deliver();
    pair.turn(1);
    expect(pair.up[1].take()).toEqual(['down 1 fenced', 'sinkDropped 1 0', 'completed 1 inDoubt']);
    expect(Buffer.compare(before, pair.up[1].sinks[0].views[0])).toBe(0);
  });

  test('a fence from inside an upcall ends the turn of that rail, and the frame after it is not handed up', () => {
    const pair = new MemoryPair();
    pair.connect();
    mustSend(pair.ends[0], frameOf(8));
    mustSend(pair.ends[0], frameOf(8));
    pair.ends[0].flush();
    pair.streams()[0].deliver();
    pair.up[1].onFrameDo = () => pair.ends[1].fence(1, { kind: 'fenced', text: 'test' });
    pair.turn(1);
    pair.turn(1);
    expect(pair.up[1].take()).toEqual(['frame 8 0', 'down 1 fenced']);
  });

  test('a revoked sink is left alone; its frame runs to its end and is counted', () => {
    const pair = new MemoryPair();
    pair.connect();
    mustSend(pair.ends[0], frameOf(8, [pattern(10_000)], { placed: true, prompt: true }));
    pair.ends[0].flush();
    const [mine] = pair.streams();
    mine.deliver(5000);
    pair.turn(1);
    const sink = pair.up[1].sinks[0];
    pair.ends[1].revokeSink(sink);
    expect(sink.revoked).toBe(true);
    const before = sink.views[0].slice();
    pair.settle();
    expect(Buffer.compare(before, sink.views[0])).toBe(0);
    expect(pair.up[1].take()).toEqual(['sinkFor 10000', 'frame 8 0 placed']);
    expect(pair.up[0].take()).toEqual(['completed 1 delivered']);
  });

  test('a damaged header ends the epoch and is not counted', () => {
    const pair = new MemoryPair();
    pair.connect();
    mustSend(pair.ends[0], frameOf(8));
    pair.ends[0].flush();
    const [mine] = pair.streams();
    mine.onTheWay[0][44] ^= 1; // in the packet header
    mine.deliver();
    pair.turn(1);
    expect(pair.up[1].take()).toEqual(['down 1 damaged']);
  });

  test('a packet that breaks the protocol ends the epoch', () => {
    const pair = new MemoryPair();
    pair.connect();
    mustSend(pair.ends[0], frameOf(8));
    pair.ends[0].flush();
    pair.up[1].onFrameDo = () => {
      throw new MultirailError('ERR_PROTOCOL', 'test');
    };
    pair.settle();
    expect(pair.up[1].take()).toEqual(['frame 8 0', 'down 1 damaged']);
  });

  test('damaged payloads are refused and told before the count; too many end the rail', () => {
    const pair = new MemoryPair({ btl_base_payload_crc: 'true', btl_base_refusals_max: '2' });
    pair.connect();
    const [mine] = pair.streams();
    const spoil = (placed: boolean): void => {
      mustSend(pair.ends[0], frameOf(8, [pattern(100)], { placed }));
      mustSend(pair.ends[0], frameOf(8, [pattern(100)]));
      pair.ends[0].flush();
      mine.onTheWay[0][60] ^= 1;
      pair.settle(4);
    };
    spoil(false);
    expect(pair.up[0].take()).toEqual(['completed 1 refused', 'completed 2 delivered']);
    expect(pair.up[1].take()).toEqual(['frame 8 100']);
    spoil(true);
    expect(pair.up[0].take()).toEqual(['completed 3 refused', 'completed 4 delivered']);
    expect(pair.up[1].take()).toEqual(['sinkFor 100', 'sinkDropped 1 0', 'frame 8 100']);
    spoil(false);
    expect(pair.up[1].take()).toEqual(['down 1 refusals']);
    expect(pair.ends[1].counters.framesRefused).toBe(3);
  });

  test('BYE both ways: no railDown, what was outstanding is delivered', () => {
    const pair = new MemoryPair({ btl_base_ack_delay_ms: '1000' });
    pair.connect();
    mustSend(pair.ends[0], frameOf(8));
    pair.ends[0].bye();
    pair.ends[0].flush();
    pair.settle(3);
    expect(pair.up[1].take()).toEqual(['frame 8 0', 'bye 1']);
    expect(pair.ends[0].send(frameOf(8))).toBe(DOWN);
    expect(pair.up[0].take()).toEqual(['completed 1 delivered']);
    mustSend(pair.ends[1], frameOf(8));
    pair.ends[1].bye();
    pair.ends[1].flush();
    pair.settle();
    expect(pair.up[0].take()).toEqual(['frame 8 0', 'bye 1']);
    expect(pair.up[1].take()).toEqual(['completed 1 delivered']);
    expect([pair.ends[0].epoch, pair.ends[1].epoch]).toEqual([0, 0]);
  });

  test('a rail that is lost after one BYE only is down', () => {
    const pair = new MemoryPair();
    pair.connect();
    pair.ends[0].bye();
    pair.ends[0].flush();
    pair.settle(3);
    pair.up[1].take();
    pair.streams()[1].closed({ kind: 'closed', text: 'reset' });
    pair.turn(1);
    expect(pair.up[1].take()).toEqual(['down 1 closed']);
  });
});

describe('connecting', () => {
  test('a newer epoch beside a silent one replaces it on both sides', () => {
    const pair = new MemoryPair();
    pair.connect();
    mustSend(pair.ends[0], frameOf(8));
    mustSend(pair.ends[1], frameOf(8));
    pair.ends[0].connect(2);
    // The old stream delivers nothing; the new one has to wait for 100 ms of alive time after the challenge.
    pair.settle(8, 10);
    expect(pair.up[0].take()).toEqual([]);
    pair.settle(20, 10);
    expect(pair.up[0].take()).toEqual(['down 1 replaced', 'completed 1 inDoubt', 'connected 2']);
    expect(pair.up[1].take()).toEqual(['admit memory:a-b#0 2', 'down 1 replaced', 'completed 1 inDoubt', 'connected 2']);
  });

  test('a live epoch of which the peer receives more makes the attempt give up', () => {
    const pair = new MemoryPair();
    pair.connect();
    const [oldMine, oldTheirs] = pair.streams();
    pair.ends[0].connect(2);
    pair.settle(5, 10);
    mustSend(pair.ends[0], frameOf(8));
    pair.ends[0].flush();
    oldMine.deliver();
    pair.settle(3, 3);
    oldTheirs.deliver();
    pair.settle(3, 10);
    expect(pair.up[0].take()).toEqual(['completed 1 delivered', 'failed 2 busy']);
    expect(pair.up[1].take()).toEqual(['frame 8 0']);
    expect(pair.ends[0].epoch).toBe(1);
    pair.settle(30, 10);
    expect(pair.up[1].take()).toEqual([]);
  });

  test('bytes of the live epoch that only come in do not: its other direction may be the dead one', () => {
    const pair = new MemoryPair();
    pair.connect();
    const [, oldTheirs] = pair.streams();
    pair.ends[0].connect(2);
    pair.settle(5, 10);
    mustSend(pair.ends[1], frameOf(8));
    pair.ends[1].flush();
    oldTheirs.deliver();
    pair.settle(30, 10);
    expect(pair.up[0].take()).toEqual(['frame 8 0', 'down 1 replaced', 'connected 2']);
    expect(pair.ends[0].epoch).toBe(2);
  });

  test('a stream that does not open is overtaken by one that is begun beside it', () => {
    const pair = new MemoryPair({ btl_base_connect_again_ms: '100' });
    pair.modules[0].reachable = false;
    pair.ends[0].connect(1);
    pair.turn(0);
    pair.turn(0, 50);
    expect(pair.modules[0].dialled.length).toBe(1);
    pair.modules[0].reachable = true;
    pair.turn(0, 60);
    expect(pair.modules[0].dialled.length).toBe(2);
    pair.settle();
    expect(pair.up[0].take()).toEqual(['connected 1']);
    expect(pair.modules[0].dialled[0].status).toBe('closed');
  });

  test('dialAgain() begins one at once', () => {
    const pair = new MemoryPair();
    pair.modules[0].reachable = false;
    pair.ends[0].connect(1);
    pair.turn(0);
    pair.modules[0].reachable = true;
    pair.ends[0].dialAgain();
    pair.settle();
    expect(pair.up[0].take()).toEqual(['connected 1']);
    // Without an attempt there is nothing to be done again.
    pair.ends[0].dialAgain();
    pair.settle();
    expect(pair.up[0].take()).toEqual([]);
    expect(pair.modules[0].dialled.length).toBe(2);
  });

  test('a handshake that the peer’s kernel does not acknowledge is given up at once', () => {
    const pair = new MemoryPair();
    let unanswered = false;
    pair.modules[0].isUnanswered = (stream) => unanswered && stream === pair.streams()[0];
    pair.ends[0].connect(1);
    pair.turn(0);
    pair.turn(0, 10);
    unanswered = true;
    pair.turn(0, 10);
    expect(pair.up[0].take()).toEqual(['failed 1 timeout']);
    expect(pair.up[0].logs.join()).toMatch(/kernel does not acknowledge/);
  });

  test('another process of the peer than the published one is refused before our proof', () => {
    const pair = new MemoryPair();
    pair.modules[0].incarnationOf = () => 1234;
    pair.ends[0].connect(1);
    pair.settle();
    expect(pair.up[0].take()).toEqual(['failed 1 refused']);
    expect(pair.up[0].logs.join()).toMatch(/incarnation .* answered where 1234 was expected/);
    expect(pair.up[1].take()).toEqual([]);
  });

  test('no challenge: busy; no connection: timeout; both by our own alive time', () => {
    const pair = new MemoryPair({ bml_connect_timeout_ms: '100' });
    pair.ends[0].connect(1);
    pair.turn(0);
    pair.now += 10_000;
    pair.up[0].run(pair.modules[0], pair.now, 1050); // ten seconds on the wall, fifty of them ours
    expect(pair.up[0].take()).toEqual([]);
    // The kernel over there took the connection, so its process gets three times as long to answer.
    pair.up[0].run(pair.modules[0], pair.now, 1290);
    expect(pair.up[0].take()).toEqual([]);
    pair.up[0].run(pair.modules[0], pair.now, 1400);
    expect(pair.up[0].take()).toEqual(['failed 1 busy']);
    pair.modules[0].reachable = false;
    pair.ends[0].connect(2);
    pair.up[0].run(pair.modules[0], pair.now, 1500);
    pair.up[0].run(pair.modules[0], pair.now, 1600);
    expect(pair.up[0].take()).toEqual(['failed 2 timeout']);
  });

  test('an epoch that was fenced is refused as stale, with the highest one', () => {
    const pair = new MemoryPair();
    pair.ends[1].fence(5, { kind: 'fenced', text: 'test' });
    pair.ends[0].connect(3);
    pair.settle();
    expect(pair.up[0].take()).toEqual(['failed 3 refused highest 5']);
    pair.connect(6);
  });

  test('what admit() refuses reaches the dialer and the log', () => {
    const pair = new MemoryPair();
    pair.up[1].admitAnswer = () => ({ ok: false, reason: 'PEER_FAILED', text: 'rank 0 was declared dead' });
    pair.ends[0].connect(1);
    pair.settle();
    expect(pair.up[0].take()).toEqual(['failed 1 refused']);
    expect(pair.up[0].logs.join()).toContain('PEER_FAILED: rank 0 was declared dead');
    expect(pair.up[1].logs.join()).toMatch(/127\.0\.0\.1.*PEER_FAILED/);
  });

  test('a wrong route on the acceptor refuses the rail', () => {
    const pair = new MemoryPair();
    pair.modules[1].check = { done: true, failure: 'packets would leave by eth9' };
    pair.ends[0].connect(1);
    pair.settle();
    expect(pair.up[0].take()).toEqual(['failed 1 route']);
    expect(pair.up[0].logs.join()).toContain('eth9');
  });

  test('another secret, another job', () => {
    const wrongSecret = new MemoryPair({}, [{}, { secret: new Uint8Array(16) }]);
    wrongSecret.ends[0].connect(1);
    wrongSecret.settle();
    expect(wrongSecret.up[0].take()).toEqual(['failed 1 refused']);
    const wrongJob = new MemoryPair({}, [{}, { jobId: 'job-2' }]);
    wrongJob.ends[0].connect(1);
    wrongJob.settle();
    expect(wrongJob.up[0].take()).toEqual(['failed 1 refused']);
    expect(wrongJob.up[0].logs.join()).toContain('BAD_JOB');
  });

  test('cancelConnect and fence end an attempt', () => {
    const pair = new MemoryPair();
    pair.ends[0].connect(1);
    pair.ends[0].cancelConnect();
    pair.settle();
    expect(pair.up[0].take()).toEqual([]);
    pair.ends[0].connect(2);
    pair.ends[0].fence(2, { kind: 'fenced', text: 'test' });
    pair.settle();
    expect(pair.up[0].take()).toEqual(['failed 2 fenced']);
    pair.connect(3);
  });

  test('handshakes are bounded in number and time', () => {
    const pair = new MemoryPair({ btl_base_handshakes_max: '2', btl_base_handshake_timeout_ms: '100', bml_connect_timeout_ms: '10000' });
    for (let epoch = 1; epoch <= 3; epoch++) pair.modules[0].dial(pair.ends[0]);
    pair.turn(1);
    expect(pair.up[1].logs.filter((line) => line.includes('btl_base_handshakes_max'))).toHaveLength(1);
    pair.turn(1, 200);
    expect(pair.up[1].logs.filter((line) => line.includes('no handshake within'))).toHaveLength(2);
    pair.connect(4);
  });
});
