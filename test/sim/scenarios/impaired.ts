// Two real rails of which one is bad without being down (bounded.ts): the plain cases, by kind and traffic. No gap is above its bound, and
// the bad rail was noticed, so what it does is not harmless.
import { Bounded, type BoundedOptions, type Impairment, MBIT, REAL_RAIL } from '../../../tools/sim/bounded.ts';
import type { ScenarioCase } from '../../../tools/sim/scenario.ts';

const MIB = 1024 * 1024;

const KINDS: Readonly<Record<string, Impairment>> = {
  'a silent flap of 60 ms': { kind: 'flap', periodUs: 60_000, darkUs: 30_000, missesAtOnce: false },
  'a rate that falls to 64 kbit/s with full queues': { kind: 'slow', bytesPerMs: 8 },
  'a rate that falls to 1 Mbit/s with full queues': { kind: 'slow', bytesPerMs: MBIT },
  'a loss of 5 percent, as over TCP': { kind: 'loss', lossPer10k: 500 },
  'a loss of 50 percent, as over TCP': { kind: 'loss', lossPer10k: 5000 },
  'a delay that jumps by 300 ms': { kind: 'delay', extraUs: 300_000 },
};

type Lab = Parameters<ScenarioCase['run']>[0];

/** How the run is watched by who plays it. */
function observed(lab: Lab): Partial<Pick<BoundedOptions, 'trace' | 'coverage'>> {
  return { ...(lab.trace === undefined ? {} : { trace: lab.trace }), ...(lab.coverage === undefined ? {} : { coverage: lab.coverage }) };
}

const TRAFFIC: Readonly<Record<string, (run: Bounded) => void>> = {
  '16 messages of 1 MiB under way': (run) => run.bulk(0, 1, MIB, 16),
  '2000 small messages a second': (run) => run.each(0, 1, 64, 500),
  'ping-pong of 64 KiB': (run) => run.pingPong(0, 1, 64 * 1024, 1000),
  'long and small messages': (run) => {
    run.bulk(0, 1, MIB / 4, 4);
    run.each(0, 1, 64, 1000);
  },
};

/** Two ranks over those rails. */
function twoRanks(lab: Lab, options: Pick<BoundedOptions, 'rails' | 'healthy'> & Partial<BoundedOptions>): Bounded {
  return new Bounded({ seed: 1, ranks: 2, messagesMax: 400, bytesMax: 16 * MIB, ...observed(lab), ...options });
}

/** What happens to the link between them that has this number. */
function impair(run: Bounded, linkNo: number, impairment: Impairment, inUs: number, forUs: number): void {
  run.impair([{ link: run.world.fabric.link(0, 1, linkNo), from: [0, 1] }], impairment, inUs, forUs);
}

/** Rails that rank 0 left because they stalled. */
const stallsOf = (run: Bounded) =>
  run.world.processes[0].railEvents.filter(({ type, reason }) => type === 'lost' && reason.startsWith('stalled')).length;

const SIBLINGS = { ...REAL_RAIL, liveness: 'siblings' } as const;
/** bml_stall_timeout_ms, which is 60, and the looks of the clock. */
const ONE_TIMEOUT_MS = 90;
/** A message of 64 KiB takes 6 ms over a rail of 100 Mbit/s. */
const SLOW_GAP_MAX_MS = 15;
/** Another message comes within 5 ms; it takes some milliseconds until the dark rail is late, and 5 ms to carry it, twice for two of them. */
const DARK_GAP_MAX_MS = 22;

/** What the plain cases leave out, each by itself. */
const MORE: readonly ScenarioCase[] = [
  {
    // A few bytes pass such a rail in no time, a fragment does not: who asks by few bytes trusts it again and again (I15).
    name: 'impaired: a rate that falls to 64 kbit/s for 8 s is not trusted for its answers to a few bytes',
    run(lab) {
      const run = twoRanks(lab, {
        rails: [{ ...REAL_RAIL, latencyUs: 80 }, REAL_RAIL],
        healthy: [1],
      });
      run.each(0, 1, 4096, 20_000);
      impair(run, 0, { kind: 'slow', bytesPerMs: 8 }, IN_US, 8_000_000);
      run.play(10_000);
      const faults = run.world.processes[0].engine.bml.peers.get(1)?.rails[0].counters.trialFaults ?? 0;
      if (faults === 0) throw new Error('scenario: it did not come about: a probe of its trial is late');
    },
  },
  {
    // The one whose acknowledgements take longer still holds what the peer did not poll for, when the other has moved already (I15).
    name: 'impaired: a peer computes, and the rail with the longer round trip is not left for it',
    run(lab) {
      const run = twoRanks(lab, {
        rails: [REAL_RAIL, { ...REAL_RAIL, latencyUs: 4000 }],
        healthy: [0, 1],
      });
      run.bulk(0, 1, MIB / 4, 16, 0, () => 2000);
      for (let i = 0; i < 5; i++) run.pause(1, IN_US + i * 500_000, 400_000);
      run.play(10_000);
      if (run.pauses < 2) throw new Error('scenario: it did not come about: the peer computes while something is under way');
    },
  },
  {
    // By the bound of a gap two may be bad one after the other; but who is silent already when the first is left is not waited for. Both are
    // dark before the next message: the first holds it, and the second is idle.
    name: 'impaired: what a rail held goes again over the sibling that answers, not over one that is dark, too',
    run(lab) {
      const run = twoRanks(lab, {
        rails: [{ ...SIBLINGS, latencyUs: 80 }, { ...SIBLINGS, latencyUs: 90 }, SIBLINGS],
        healthy: [2],
      });
      run.each(0, 1, 4096, 25_000);
      for (const linkNo of [0, 1]) impair(run, linkNo, { kind: 'dark', missesAtOnce: false }, 190_000, 1_000_000);
      run.play(10_000);
      if (stallsOf(run) < 2) throw new Error('scenario: it did not come about: both dark rails are left');
      const { worstMs } = run.gaps;
      if (worstMs > ONE_TIMEOUT_MS) throw new Error(`a message waited for ${worstMs.toFixed(0)} ms, which is for one rail after the other`);
    },
  },
  {
    // It is light for longer than a first trial takes, and then dark again: who trusts it at once or for one answer, or makes no trial longer
    // than the last, leaves it again and again (I15).
    name: 'impaired: a flap of 500 ms for 6 s, with long messages now and then, is left a few times and no more',
    run(lab) {
      const run = twoRanks(lab, {
        rails: [{ ...REAL_RAIL, latencyUs: 80 }, REAL_RAIL],
        healthy: [1],
        messagesMax: 2000,
        bytesMax: 256 * MIB,
      });
      run.bulk(0, 1, MIB / 4, 2, 0, () => 10_000);
      impair(run, 0, { kind: 'flap', periodUs: 500_000, darkUs: 200_000, missesAtOnce: true }, IN_US, 6_000_000);
      run.play(10_000);
      const stalls = run.world.processes[0].engine.bml.peers.get(1)?.rails[0].counters.stalls ?? 0;
      if (stalls === 0) throw new Error('scenario: it did not come about: the rail is left');
    },
  },
  {
    // Nothing is wrong with the slow one; but what has a piece on it is not there before that is through.
    name: 'impaired: a rail of 2 Mbit/s takes nothing that one of 100 Mbit/s has through sooner',
    run(lab) {
      const run = twoRanks(lab, {
        rails: [
          { ...REAL_RAIL, bytesPerMs: 100 * MBIT },
          { ...REAL_RAIL, bytesPerMs: 2 * MBIT },
        ],
        healthy: [0, 1],
      });
      run.bulk(0, 1, 64 * 1024, 4);
      run.play(10_000);
      if (!run.world.processes[0].engine.bml.peers.get(1)?.rails[1].isKnown)
        throw new Error('scenario: it did not come about: the slow rail was asked what it carries');
      const { worstMs } = run.gaps;
      if (worstMs > SLOW_GAP_MAX_MS) throw new Error(`nothing was delivered for ${worstMs.toFixed(1)} ms: the slow rail kept it waiting`);
    },
  },
  {
    // What the slower one has through in 5 ms is not kept for the faster one, of which nobody has heard for longer than it ever took.
    name: 'impaired: a faster rail that has just gone dark is not waited for',
    run(lab) {
      const run = twoRanks(lab, {
        rails: [REAL_RAIL, { ...REAL_RAIL, bytesPerMs: 100 * MBIT }],
        healthy: [1],
        messagesMax: 60,
      });
      // Each in a row of its own, so that what is lost with the rail keeps only its own row waiting.
      for (let i = 0; i < 10; i++) run.each(0, 1, 64 * 1024, 50_000, i * 5000);
      impair(run, 0, { kind: 'dark', missesAtOnce: false }, 203_000, 1_000_000);
      run.play(10_000);
      if (stallsOf(run) === 0) throw new Error('scenario: it did not come about: the dark rail held something');
      const { worstMs } = run.gaps;
      if (worstMs > DARK_GAP_MAX_MS) throw new Error(`nothing was delivered for ${worstMs.toFixed(1)} ms: the dark rail was waited for`);
    },
  },
];

/** When the rail gets bad: bulk of 16 MiB over two rails of 1 Gbit/s is under way for 70 ms. */
const IN_US = 5000;
const FOR_US = 800_000;

export function* impaired(): Iterable<ScenarioCase> {
  yield* MORE;
  for (const [kind, impairment] of Object.entries(KINDS)) {
    for (const [traffic, start] of Object.entries(TRAFFIC)) {
      for (const liveness of ['self', 'siblings'] as const) {
        yield {
          name: `impaired: ${kind}, ${traffic}, ${liveness === 'self' ? 'rails that check themselves' : 'rails judged by siblings'}`,
          run(lab) {
            const run = twoRanks(lab, {
              // Small messages go to the first one, which is the faster.
              rails: [
                { ...REAL_RAIL, liveness, latencyUs: 80 },
                { ...REAL_RAIL, liveness },
              ],
              healthy: [1],
            });
            start(run);
            impair(run, 0, impairment, IN_US, FOR_US);
            run.play(10_000);
            const noticed = run.world.processes.some(({ railEvents }) =>
              railEvents.some(({ type, rail, peer }) => rail === 0 && peer < 2 && (type === 'suspect' || type === 'lost')),
            );
            if (!noticed) throw new Error('scenario: it did not come about: the bad rail is noticed');
          },
        };
      }
    }
  }
}
