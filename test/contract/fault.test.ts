// The fault interposer around simulated rails and around TCP: without faults it is transparent, so the whole contract suite
// runs through it; with faults the contract is still kept towards the layers above.
import { describe, expect, it } from 'vitest';
import { BUSY, DELIVERED, IN_DOUBT, OK, REFUSED } from '../../src/btl/btl.ts';
import { type FaultModule, wrapFaultComponent } from '../../src/btl/interpose/fault.ts';
import { Prng } from '../../src/util/prng.ts';
import { Fabric, type RailSpec } from '../../tools/sim/fabric.ts';
import { simComponent } from '../../tools/sim/sim-btl.ts';
import { type Fixture, type Pair, simPair } from '../support/btl-fixture.ts';
import { makeFrame } from '../support/btl-recorder.ts';
import { streamFixture } from '../support/stream-fixture.ts';
import { btlSuite, sendAll, statusOf } from './suite.ts';

function faultedSim(seed: string, rail: Partial<RailSpec>, plan = ''): Fixture {
  return {
    setup: async (options) => {
      const fabric = new Fabric({ seed, ranks: 2, rails: [rail, rail] });
      return simPair({ ...options, fabric, componentOf: () => wrapFaultComponent(simComponent(fabric), plan) });
    },
  };
}

const controlOf = (side: Pair['a']) => (side.module as FaultModule).control;

btlSuite('fault interposer without faults, sim', faultedSim('transparent', {}));
btlSuite(
  'fault interposer without faults, sim one-sided',
  faultedSim('transparent 2', { canPut: true, canGet: true, lateOneSidedUsMax: 300_000 }),
);
const tcpBehindFaults = (native: boolean) => streamFixture('tcp', (component) => wrapFaultComponent(component, ''), native);
btlSuite('fault interposer without faults, node:net tcp', await tcpBehindFaults(false));
btlSuite('fault interposer without faults, native tcp', await tcpBehindFaults(true));

async function reconnect(pair: Pair, epoch: number): Promise<void> {
  pair.a.endpoints[0].connect(epoch);
  await pair.drive(() => pair.a.endpoints[0].epoch === epoch && pair.b.endpoints[0].epoch === epoch, `epoch ${epoch} connected`);
  const { frame } = pair.a.send(1000, { placed: true });
  pair.a.endpoints[0].flush();
  await pair.drive(() => statusOf(pair.a, frame) === DELIVERED, 'delivered on the new epoch');
}

function faultClauses(name: string, fixture: Fixture): void {
  describe(`faults: ${name}`, () => {
    const clause = (title: string, body: (pair: Pair) => Promise<void>, railTimeoutMs = 60) =>
      it(title, async (context) => {
        if (fixture.unavailable !== undefined) {
          console.info(`skipped: ${name}: ${title}: ${fixture.unavailable}`);
          return context.skip(fixture.unavailable);
        }
        const pair = await fixture.setup({ params: { bml_rail_timeout_ms: String(railTimeoutMs), bml_connect_timeout_ms: '80' } });
        try {
          await body(pair);
          pair.check();
        } finally {
          await pair.close();
        }
      });

    clause('pull error: down with everything in doubt, connections refused until restored', async (pair) => {
      const { a, b } = pair;
      await sendAll(
        pair,
        a,
        Array.from({ length: 30 }, (_, i) => makeFrame(i + 1, 5000, { placed: i % 2 === 0 })),
      );
      controlOf(a).pull({ rail: 0 }, 'error');
      await pair.drive(() => a.recorder.count('railDown') === 1 && b.recorder.count('railDown') === 1, 'down on both sides');
      expect(a.recorder.find('railDown')?.text).toBe('injected');
      a.endpoints[0].connect(2);
      await pair.drive(() => a.recorder.count('connectFailed') === 1, 'refused while pulled');
      controlOf(a).restore({ rail: 0 });
      await reconnect(pair, 3);
    });

    clause('pull at the acceptor: the dialer is refused', async (pair) => {
      const { a, b } = pair;
      controlOf(b).pull({}, 'error');
      await pair.drive(() => a.recorder.count('railDown') === 1 && b.recorder.count('railDown') === 1, 'down on both sides');
      a.endpoints[0].connect(2);
      await pair.drive(() => a.recorder.count('connectFailed') === 1, 'refused');
      controlOf(b).restore({});
      await reconnect(pair, 3);
    });

    clause('pull silent on both sides, as a cable: silence, then in doubt, then back', async (pair) => {
      const { a, b } = pair;
      await sendAll(pair, a, [makeFrame(1, 100)]);
      await pair.drive(() => a.open === 0, 'delivered');
      for (const side of [a, b]) controlOf(side).pull({ rail: 0 });
      const lost = [a.send(100), a.send(5000, { placed: true })];
      const back = b.send(100);
      for (const side of [a, b]) side.endpoints[0].flush();
      a.endpoints[0].probe(1);
      await pair.settle(20);
      expect(a.recorder.probes).toEqual([]);
      expect(b.recorder.framesSeen).toBe(1);
      if (a.endpoints[0].plan.attributes.liveness === 'siblings') {
        await pair.settle(100);
        expect(a.recorder.count('railDown') + b.recorder.count('railDown')).toBe(0);
        for (const side of [a, b]) side.endpoints[0].fence(1, { kind: 'silent', text: 'judged by the suite' });
      }
      await pair.drive(() => a.recorder.count('railDown') === 1 && b.recorder.count('railDown') === 1, 'silence noticed');
      for (const { frame } of lost) expect(statusOf(a, frame)).toBe(IN_DOUBT);
      expect(statusOf(b, back.frame)).toBe(IN_DOUBT);
      a.endpoints[0].connect(2);
      await pair.drive(() => a.recorder.count('connectFailed') === 1, 'no answer');
      expect(a.recorder.find('connectFailed')?.text).toBe('timeout');
      for (const side of [a, b]) controlOf(side).restore({ rail: 0 });
      await reconnect(pair, 3);
    });

    // In time also where this process stands still for a while, since others use its processor.
    const back = async ({ a, b, settle, drive }: Pair): Promise<void> => {
      for (const side of [a, b]) controlOf(side).pull({ rail: 0 }, 'silent-out');
      const sent = Array.from({ length: 10 }, (_, i) => a.send(2000, { placed: i % 2 === 0 }));
      a.endpoints[0].flush();
      await settle(10);
      expect(b.recorder.framesSeen).toBe(0);
      for (const side of [a, b]) controlOf(side).restore({});
      await drive(() => a.open === 0, 'all completed');
      for (const { frame } of sent) expect(statusOf(a, frame)).toBe(DELIVERED);
    };
    clause('pull silent and back in time: what was sent goes out late, nothing is lost', back, 10_000);

    clause('pull silent-in with frames on their way: they are not counted, the loss shows later', async (pair) => {
      const { a, b } = pair;
      const sent = Array.from({ length: 10 }, (_, i) => a.send(2000, { placed: i % 2 === 0 }));
      a.endpoints[0].flush();
      controlOf(b).pull({ rail: 0 }, 'silent-in');
      await pair.drive(() => a.recorder.count('railDown') === 1, 'the sender loses its rail');
      for (const { frame } of sent) expect(statusOf(a, frame)).toBe(IN_DOUBT);
      expect(b.recorder.framesSeen).toBe(0);
      controlOf(b).restore({});
      await pair.drive(() => b.recorder.count('railDown') === 1, 'and the end comes up here');
      await reconnect(pair, 2);
    });

    clause('pull inside: half of a placed frame is written, the frame does not count', async (pair) => {
      const { a, b } = pair;
      controlOf(b).pull({ rail: 0 }, 'inside');
      const first = a.send(10);
      const half = a.send(100_000, { placed: true });
      a.endpoints[0].flush();
      await pair.drive(() => a.recorder.count('railDown') === 1 && b.recorder.count('railDown') === 1, 'down');
      expect(statusOf(a, half.frame)).toBe(IN_DOUBT);
      expect(b.recorder.model(0, 1).received).toEqual([first.id]);
      expect(b.recorder.find('railDown')?.text).toBe('injected');
      const [record] = b.recorder.sinks;
      expect(record.dropped).toBe(true);
      expect(record.buffer.subarray(0, 50_000).some((byte) => byte !== 0)).toBe(true);
      expect(record.buffer.subarray(50_000).every((byte) => byte === 0)).toBe(true);
      controlOf(b).restore({});
      await reconnect(pair, 2);
    });

    clause('busy, stall and corrupt: back-pressure, delay, one refusal, one damaged rail', async (pair) => {
      const { a, b } = pair;
      controlOf(a).busy({ rail: 0 }, 20);
      expect(a.send(1).result).toBe(BUSY);
      await pair.drive(() => a.recorder.count('writable') === 1, 'onWritable');
      // A turn first: the interposer's clock is that of the last one.
      await pair.settle(1);
      const stalledMs = pair.now();
      controlOf(a).stall({ rail: 0 }, 20);
      const late = a.send(100);
      expect(late.result).toBe(OK);
      a.endpoints[0].flush();
      await pair.drive(() => statusOf(a, late.frame) === DELIVERED, 'delivered after the stall');
      expect(pair.now() - stalledMs).toBeGreaterThan(10);
      controlOf(a).stall({}, 20);
      const silent = b.send(100);
      b.endpoints[0].flush();
      await pair.drive(() => statusOf(b, silent.frame) === DELIVERED, 'delivered after a stall of the whole module');
      controlOf(a).corrupt({ rail: 0 }, 'payload');
      const refused = a.send(100);
      const fine = a.send(100);
      a.endpoints[0].flush();
      await pair.drive(() => a.open === 0, 'completed');
      expect(statusOf(a, refused.frame)).toBe(REFUSED);
      expect(statusOf(a, fine.frame)).toBe(DELIVERED);
      controlOf(b).corrupt({ rail: 0 }, 'header');
      const damaged = a.send(100);
      a.endpoints[0].flush();
      await pair.drive(() => statusOf(a, damaged.frame) === IN_DOUBT, 'in doubt');
      await pair.drive(() => b.recorder.count('railDown') === 1, 'down');
      expect(b.recorder.find('railDown')?.text).toBe('damaged');
    });

    clause('slow: frames arrive late, in order and at the rate, and the rail is no silent one', async (pair) => {
      const { a, b } = pair;
      // Ten frames of 2 ms each at that rate, behind nothing.
      // The interposer's clock is that of the last turn: counted from before it.
      const fromMs = pair.now();
      await pair.settle(1);
      controlOf(a).slow({ rail: 0 }, 1_000_000);
      const sent = Array.from({ length: 10 }, (_, i) => a.send(2000, { placed: i % 2 === 0 }));
      a.endpoints[0].flush();
      a.endpoints[0].probe(77);
      await pair.drive(() => a.open < 10, 'the first is delivered');
      expect(pair.now() - fromMs).toBeGreaterThanOrEqual(2);
      // The probe waits behind them. Where this process stood for longer than all of them take, all have come at once.
      while (a.open > 0) {
        expect(a.recorder.probes).toEqual([]);
        await pair.settle(1);
      }
      expect(pair.now() - fromMs).toBeGreaterThanOrEqual(20);
      for (const { frame } of sent) expect(statusOf(a, frame)).toBe(DELIVERED);
      // The answers that the rail asks for itself are nobody's.
      await pair.drive(() => a.recorder.probes.length > 0, 'the probe is answered');
      expect(a.recorder.probes.every((probeId) => probeId === 77)).toBe(true);
      // Nothing passes for longer than the rail timeout, and yet the other side is heard of.
      const reports = a.recorder.reports.length;
      const long = a.send(150_000);
      await pair.settle(100);
      expect(statusOf(a, long.frame)).toBeUndefined();
      expect(a.recorder.reports.length).toBeGreaterThan(reports);
      expect(a.recorder.count('railDown') + b.recorder.count('railDown')).toBe(0);
      controlOf(a).restore({ rail: 0 });
      await pair.drive(() => statusOf(a, long.frame) === DELIVERED, 'restored, what was queued goes at once');
    });

    clause('slow with frames under way: what follows waits behind them', async (pair) => {
      const { a } = pair;
      // As above: the interposer counts from the last turn, which therefore comes after this.
      const fromMs = pair.now();
      await pair.settle(1);
      const ahead = a.send(20_000);
      controlOf(a).slow({}, 1_000_000);
      a.endpoints[0].flush();
      const behind = a.send(10);
      await pair.drive(() => a.open === 0, 'both are delivered');
      expect(pair.now() - fromMs).toBeGreaterThanOrEqual(20);
      for (const { frame } of [ahead, behind]) expect(statusOf(a, frame)).toBe(DELIVERED);
      controlOf(a).restore({});
    });

    clause('lossy: the rail stops for a retransmission time-out and goes on, and all is delivered in order', async (pair) => {
      const { a, b } = pair;
      const isSelf = a.endpoints[0].plan.attributes.liveness === 'self';
      // Of a frame of one packet that nothing follows 99 of 100 are missed by their time-out only.
      controlOf(a).lossy({ rail: 0 }, 9900, 'a seed');
      const late = a.send(100);
      a.endpoints[0].flush();
      await pair.settle(20);
      expect(b.recorder.framesSeen).toBe(0);
      if (isSelf) {
        // The timeout of the rail is shorter than TCP's least time-out: a rail that checks itself takes it for silence.
        await pair.drive(() => a.recorder.count('railDown') === 1, 'silence noticed');
        expect(a.recorder.find('railDown')?.text).toBe('silent');
        expect(statusOf(a, late.frame)).toBe(IN_DOUBT);
        await pair.drive(() => b.recorder.count('railDown') === 1, 'and at the other side');
        controlOf(a).restore({});
        return reconnect(pair, 2);
      }
      await pair.settle(150);
      expect(statusOf(a, late.frame)).toBeUndefined();
      expect(a.recorder.count('railDown')).toBe(0);
      // At one percent most frames pass at once, in order behind the one that is late.
      controlOf(a).lossy({ rail: 0 }, 100, 'another');
      const sent = [late, ...Array.from({ length: 50 }, (_, i) => a.send(2000, { placed: i % 2 === 0 }))];
      await pair.drive(() => a.open === 0, 'all are delivered');
      for (const { frame } of sent) expect(statusOf(a, frame)).toBe(DELIVERED);
      controlOf(a).restore({});
    });
  });
}

faultClauses('sim, self-checking', faultedSim('faults 1', {}));
faultClauses('sim, siblings', faultedSim('faults 2', { liveness: 'siblings', latencyUs: 200 }));
faultClauses('node:net tcp', await tcpBehindFaults(false));
faultClauses('native tcp', await tcpBehindFaults(true));

describe('faults by plan', () => {
  it('a textual plan pulls and restores at its times, measured from the first progress()', async () => {
    const fixture = faultedSim('plan', {}, 'pull:0:error@50ms,restore:0@90ms,pull:0/1:error@200ms');
    const pair = await fixture.setup({});
    const { a } = pair;
    await pair.drive(() => a.recorder.count('railDown') === 1, 'pulled');
    expect(Math.round(pair.now())).toBeGreaterThanOrEqual(50);
    expect(pair.now()).toBeLessThan(60);
    await pair.settle(100 - pair.now());
    await reconnect(pair, 2);
    await pair.drive(() => a.recorder.count('railDown') === 2, 'pulled again');
    pair.check();
    await pair.close();
  });

  for (let seed = 1; seed <= 40; seed++) {
    it(`random faults keep the contract, seed ${seed}`, async () => {
      const kinds = 'silent+silent-out+silent-in+error+inside+busy+stall+payload+header+lossy+slow';
      const rail = { liveness: seed % 2 === 0 ? ('self' as const) : ('siblings' as const), latencyUs: 300, jitterUs: 200 };
      const fixture = faultedSim(`random ${seed}`, rail, `random:seed=${seed},every=20ms,heal=30ms,kinds=${kinds}`);
      const pair = await fixture.setup({ unconnected: true, params: { bml_rail_timeout_ms: '25', bml_connect_timeout_ms: '15' } });
      const { a, b } = pair;
      const prng = new Prng(seed).split('traffic');
      let epoch = 0;
      let dialling = false;
      for (let round = 0; round < 300; round++) {
        if (dialling && (a.recorder.find('connected', 0, epoch) !== undefined || a.recorder.find('connectFailed', 0, epoch) !== undefined))
          dialling = false;
        if (!dialling && a.endpoints[0].epoch === 0) {
          epoch = Math.max(epoch, b.recorder.highestSeen.get(0) ?? 0) + 1;
          a.endpoints[0].connect(epoch);
          dialling = true;
        }
        for (const side of [a, b]) {
          for (let i = prng.below(4); i > 0; i--) side.send(prng.below(20_000), { placed: prng.chance(1, 2) });
          side.endpoints[0].flush();
          if (prng.chance(1, 40) && side.endpoints[0].epoch > 0)
            side.endpoints[0].fence(side.endpoints[0].epoch, { kind: 'fenced', text: 'seeded' });
        }
        await pair.settle(prng.between(0, 2));
      }
      for (const side of [a, b]) side.endpoints[0].fence(epoch, { kind: 'fenced', text: 'the end' });
      await pair.settle(200);
      expect(a.open + b.open).toBe(0);
      expect(a.recorder.framesSeen + b.recorder.framesSeen).toBeGreaterThan(0);
      pair.check();
      await pair.close();
    });
  }
});
