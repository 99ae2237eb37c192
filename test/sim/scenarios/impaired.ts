// Two real rails of which one is bad without being down (bounded.ts): the plain cases, by kind and traffic. No gap is above its bound, and
// the bad rail was noticed: what it does is not harmless.
import { Bounded, type Impairment, MBIT, REAL_RAIL } from '../../../src/sim/bounded.ts';
import type { ScenarioCase } from '../../../src/sim/scenario.ts';

const MIB = 1024 * 1024;

const KINDS: Readonly<Record<string, Impairment>> = {
  'a silent flap of 60 ms': { kind: 'flap', periodUs: 60_000, darkUs: 30_000, missesAtOnce: false },
  'a rate that falls to 64 kbit/s with full queues': { kind: 'slow', bytesPerMs: 8 },
  'a rate that falls to 1 Mbit/s with full queues': { kind: 'slow', bytesPerMs: MBIT },
  'a loss of 5 percent, as over TCP': { kind: 'loss', lossPer10k: 500 },
  'a loss of 50 percent, as over TCP': { kind: 'loss', lossPer10k: 5000 },
  'a delay that jumps by 300 ms': { kind: 'delay', extraUs: 300_000 },
};

const TRAFFIC: Readonly<Record<string, (run: Bounded) => void>> = {
  '16 messages of 1 MiB under way': (run) => run.bulk(0, 1, MIB, 16),
  '2000 small messages a second': (run) => run.each(0, 1, 64, 500),
  'ping-pong of 64 KiB': (run) => run.pingPong(0, 1, 64 * 1024, 1000),
  'long and small messages': (run) => {
    run.bulk(0, 1, MIB / 4, 4);
    run.each(0, 1, 64, 1000);
  },
};

/** When the rail gets bad: bulk of 16 MiB over two rails of 1 Gbit/s is under way for 70 ms. */
const IN_US = 5000;
const FOR_US = 800_000;

export function* impaired(): Iterable<ScenarioCase> {
  for (const [kind, impairment] of Object.entries(KINDS)) {
    for (const [traffic, start] of Object.entries(TRAFFIC)) {
      for (const liveness of ['self', 'siblings'] as const) {
        yield {
          name: `impaired: ${kind}, ${traffic}, ${liveness === 'self' ? 'rails that check themselves' : 'rails judged by siblings'}`,
          run(lab) {
            const run = new Bounded({
              seed: 1,
              ranks: 2,
              // Small messages go to the first one, which is the faster.
              rails: [
                { ...REAL_RAIL, liveness, latencyUs: 80 },
                { ...REAL_RAIL, liveness },
              ],
              healthy: [1],
              messagesMax: 400,
              bytesMax: 16 * MIB,
              ...(lab.trace === undefined ? {} : { trace: lab.trace }),
              ...(lab.coverage === undefined ? {} : { coverage: lab.coverage }),
            });
            start(run);
            const link = run.world.fabric.link(0, 1, 0);
            run.impair([{ link, from: [0, 1] }], impairment, IN_US, FOR_US);
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
