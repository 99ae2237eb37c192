// What is done to a rail in the campaign of bad links, by name. A fault that asks for an action which this build's lab does not have is
// known, and says so; it is not run and never counted. Imports the lab, the generator.
import { type Lab, sleep } from '../src/lab/lab.ts';
import type { Prng } from '../src/util/prng.ts';

/** What must be ended before the rail is healed, and what it counted. */
export interface Impairment {
  end?(): Promise<void>;
  /** How often a flapping rail has gone. */
  cycles?(): number;
}

export interface GrayFault {
  text: string;
  group: 'control' | 'flap, silent' | 'flap with carrier' | 'gone' | 'loss' | 'loss, one way' | 'damage' | 'rate' | 'delay' | 'reordering';
  /** A fault lasts so long. */
  holdMs: number;
  /** Parameters that its jobs need beside the others. */
  mca?: Record<string, string>;
  /** Method of the lab without which it is not run. */
  needs?: string;
  /** Of the 175 cells that the bound is asked of; others are run by name only. */
  isAsked: boolean;
  begin(lab: Lab, rail: number, chance: Prng): Promise<Impairment>;
}

const HOLD_MS = 1000;
const FLAP_PERIODS_MS = [10, 20, 40, 60, 100, 150, 250, 500, 1000, 2000];
const PERCENTS = [1, 5, 20, 50];

/** Five periods, 1 s at least; of the long ones as many as fit into 2 s, but more than one. */
const flapHoldMs = (periodMs: number) => Math.min(Math.max(HOLD_MS, 5 * periodMs), Math.max(2 * HOLD_MS, 1.25 * periodMs));

/** Calls a method of the lab by its name: it may be one that this build does not have. */
const call = async (lab: Lab, name: string, ...args: unknown[]): Promise<Impairment> => {
  await (lab as unknown as Record<string, (...args: unknown[]) => Promise<unknown>>)[name](...args);
  return {};
};

const anyNode = (lab: Lab, chance: Prng) => chance.below(lab.nodeCount);

function makeFaults(): Record<string, GrayFault> {
  const faults: Record<string, GrayFault> = {
    none: { text: 'no fault (control)', group: 'control', holdMs: HOLD_MS, isAsked: false, begin: async () => ({}) },
    blackhole: {
      text: 'black hole',
      group: 'gone',
      holdMs: HOLD_MS,
      isAsked: false,
      begin: (lab, rail) => call(lab, 'blackhole', rail),
    },
    oneway: {
      text: 'one direction lost',
      group: 'gone',
      holdMs: HOLD_MS,
      isAsked: false,
      begin: (lab, rail, chance) => call(lab, 'oneWay', rail, anyNode(lab, chance)),
    },
  };
  for (const silent of [true, false]) {
    for (const periodMs of FLAP_PERIODS_MS) {
      faults[`flap-${silent ? 'silent' : 'carrier'}-${periodMs}`] = {
        text: `flaps every ${periodMs} ms${silent ? ', silently' : ' with carrier'}`,
        group: silent ? 'flap, silent' : 'flap with carrier',
        holdMs: flapHoldMs(periodMs),
        isAsked: true,
        async begin(lab, rail) {
          const flap = lab.flap(rail, periodMs, { silent });
          return { cycles: () => flap.cycles };
        },
      };
    }
  }
  const common = { holdMs: HOLD_MS, isAsked: true };
  for (const percent of PERCENTS) {
    faults[`loss-${percent}`] = {
      ...common,
      text: `${percent} % lost`,
      group: 'loss',
      needs: 'loss',
      begin: (lab, rail) => call(lab, 'loss', rail, percent),
    };
    faults[`loss-oneway-${percent}`] = {
      ...common,
      text: `${percent} % lost one way`,
      group: 'loss, one way',
      needs: 'loss',
      begin: (lab, rail, chance) => call(lab, 'loss', rail, percent, anyNode(lab, chance)),
    };
    faults[`flip-${percent}`] = {
      ...common,
      text: `a bit of ${percent} % flipped`,
      group: 'damage',
      needs: 'flip',
      mca: { btl_base_payload_crc: 'true' },
      begin: (lab, rail) => call(lab, 'flip', rail, percent),
    };
  }
  for (const [name, mbit] of [
    ['1mbit', 1],
    ['64kbit', 0.064],
  ] as const) {
    faults[`rate-${name}`] = {
      ...common,
      text: `rate falls to ${mbit >= 1 ? `${mbit} Mbit/s` : `${mbit * 1000} kbit/s`}`,
      group: 'rate',
      begin: (lab, rail) => call(lab, 'throttle', rail, mbit),
    };
  }
  faults['delay-300'] = {
    ...common,
    text: 'delay jumps by 300 ms',
    group: 'delay',
    needs: 'delay',
    begin: (lab, rail) => call(lab, 'delay', rail, 300),
  };
  faults['delay-swing'] = {
    ...common,
    text: 'delay swings between 1 and 200 ms',
    group: 'delay',
    needs: 'delay',
    async begin(lab, rail) {
      // Up and down in steps, as a queue somewhere that fills and drains.
      let isOver = false;
      const swinging = (async () => {
        for (let step = 0; !isOver; step++) {
          await call(lab, 'delay', rail, [1, 70, 140, 200, 140, 70][step % 6]);
          await sleep(60);
        }
      })();
      return {
        async end() {
          isOver = true;
          await swinging;
        },
      };
    },
  };
  faults['reorder-20'] = {
    ...common,
    text: '20 % reordered',
    group: 'reordering',
    needs: 'reorder',
    begin: (lab, rail) => call(lab, 'reorder', rail, 20),
  };
  return faults;
}

export const GRAY_FAULTS: Readonly<Record<string, GrayFault>> = makeFaults();

/** Why that fault cannot be run here, if it cannot. */
export function whyNotRun(lab: Lab, name: string): string | undefined {
  const { needs } = GRAY_FAULTS[name];
  if (needs === undefined || typeof (lab as unknown as Record<string, unknown>)[needs] === 'function') return undefined;
  return `the lab of this build has no \`${needs}\``;
}
