// What is done to a rail in the campaign of bad links, by name. A fault that needs the lab's forwarder where there is none is known, and says
// so; it is not run and never counted. Imports the lab, the generator.

import type { Prng } from '../../src/util/prng.ts';
import { findForwarder } from '../../tools/lab/forwarder.ts';
import type { Lab } from '../../tools/lab/lab.ts';

/** An impairment that counts; the lab's heal() ends every one. */
export interface Impairment {
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
  needsForwarder?: boolean;
  /** Whether it is one of the 175 cells that the bound is asked of; others are run by name only. */
  isAsked: boolean;
  begin(lab: Lab, rail: number, chance: Prng): Promise<Impairment>;
}

const HOLD_MS = 1000;
const FLAP_PERIODS_MS = [10, 20, 40, 60, 100, 150, 250, 500, 1000, 2000];
const PERCENTS = [1, 5, 20, 50];

/** Five periods, 1 s at least; of the long ones as many as fit into 2 s, but more than one. */
const flapHoldMs = (periodMs: number) => Math.min(Math.max(HOLD_MS, 5 * periodMs), Math.max(2 * HOLD_MS, 1.25 * periodMs));

const begun = async (work: Promise<unknown>): Promise<Impairment> => {
  await work;
  return {};
};

/** A port's memory does not shrink with its rate: what the rail's queue takes at full rate, it takes at any. */
const queueBytes = (lab: Lab, rail: number): number => lab.rails[rail].queueMs * lab.rails[rail].mbit * 125;

const anyNode = (lab: Lab, chance: Prng) => chance.below(lab.nodeCount);

function makeFaults(): Record<string, GrayFault> {
  const faults: Record<string, GrayFault> = {
    none: { text: 'no fault (control)', group: 'control', holdMs: HOLD_MS, isAsked: false, begin: async () => ({}) },
    blackhole: {
      text: 'black hole',
      group: 'gone',
      holdMs: HOLD_MS,
      isAsked: false,
      begin: (lab, rail) => begun(lab.blackhole(rail)),
    },
    oneway: {
      text: 'one direction lost',
      group: 'gone',
      holdMs: HOLD_MS,
      isAsked: false,
      begin: (lab, rail, chance) => begun(lab.oneWay(rail, anyNode(lab, chance))),
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
      begin: (lab, rail) => begun(lab.loss(rail, percent)),
    };
    faults[`loss-oneway-${percent}`] = {
      ...common,
      text: `${percent} % lost one way`,
      group: 'loss, one way',
      begin: (lab, rail, chance) => begun(lab.loss(rail, percent, anyNode(lab, chance))),
    };
    faults[`flip-${percent}`] = {
      ...common,
      text: `a bit of ${percent} % flipped`,
      group: 'damage',
      needsForwarder: true,
      mca: { btl_base_payload_crc: 'true' },
      begin: (lab, rail) => begun(lab.flip(rail, percent)),
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
      begin: (lab, rail) => begun(lab.throttle(rail, mbit, queueBytes(lab, rail))),
    };
  }
  faults['delay-300'] = {
    ...common,
    text: 'delay jumps by 300 ms',
    group: 'delay',
    needsForwarder: true,
    begin: (lab, rail) => begun(lab.delay(rail, 300)),
  };
  faults['delay-swing'] = {
    ...common,
    text: 'delay swings between 10 and 190 ms',
    group: 'delay',
    needsForwarder: true,
    begin: (lab, rail) => begun(lab.delay(rail, 100, 90)),
  };
  faults['reorder-20'] = {
    ...common,
    text: '20 % reordered',
    group: 'reordering',
    needsForwarder: true,
    begin: (lab, rail) => begun(lab.reorder(rail, 20)),
  };
  return faults;
}

export const GRAY_FAULTS: Readonly<Record<string, GrayFault>> = makeFaults();

/** Why that fault cannot be run here, if it cannot. */
export function whyNotRun(name: string): string | undefined {
  if (GRAY_FAULTS[name].needsForwarder !== true) return undefined;
  const found = findForwarder();
  return 'missing' in found ? `the lab's forwarder is missing: ${found.missing}` : undefined;
}
