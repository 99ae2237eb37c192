// `multirail ft campaign 001`: a matrix product with faults on purpose, once by replicas, two of each rank or three, and once without, the same faults
// in both. What becomes of each fault is classed as in paper 001; three replicas correct most of them. Here: which fault strikes when, and the verdict. The jobs are in tools/cli/ft-campaign-001.ts.
import { MultirailError } from '../../src/errors.ts';
import { DIVERGED_CODE } from '../../src/util/exit-codes.ts';
import { Prng } from '../../src/util/prng.ts';
import { columns, type Finding, percent } from './papers.ts';

export const PRODUCT_RANKS = 4;
export const PRODUCT_ROWS = 24;
/** Each class must occur so often in 500 faults, and so many of them must go wrong without replicas; else the faults are too harmless. */
const CLASS_SHARE = 15 / 500;
const WRONG_SHARE = 100 / 500;

/**
 * What a fault has come to: LE, it is latent and has no effect; TDC, data that were sent are corrupt, and FSC, a result is; TOE, a replica does not
 * come; DUE, a process ends.
 */
export const CLASSES = ['LE', 'TDC', 'FSC', 'TOE', 'DUE'] as const;
export type FaultClass = (typeof CLASSES)[number];

export interface FaultsInput {
  readonly faults: number;
  readonly seed: number;
  /** Of each rank; 2 by default. */
  readonly replicas?: number;
}

/** One fault. */
export interface FaultRun {
  /** From 1. */
  readonly number: number;
  readonly kind: 'flip' | 'stall' | 'exit';
  readonly rank: number;
  readonly replica: 'lead' | 'shadow';
  readonly buffer: string | undefined;
  /** Share of the work. */
  readonly at: number;
  readonly bits: number;
  readonly seed: number;
}

/** How a job has ended. */
export interface FaultEnd {
  readonly exitCode: number;
  /** It was ended, since it came to no end by itself. */
  readonly isStuck: boolean;
  /** Undefined: the master has told no result. */
  readonly isRight: boolean | undefined;
  readonly said: string;
}

export interface FaultPlayed {
  readonly fault: FaultRun;
  readonly paired: FaultEnd;
  readonly single: FaultEnd;
}

/** Shares of what strikes: bits of the factors, of the own rows of the product, of indices, of the whole product, loops, and ends. */
const TARGETS: readonly { readonly share: number; readonly kind: FaultRun['kind']; readonly buffer?: string }[] = [
  { share: 0.22, kind: 'flip', buffer: 'A' },
  { share: 0.22, kind: 'flip', buffer: 'B' },
  { share: 0.2, kind: 'flip', buffer: 'C' },
  { share: 0.12, kind: 'flip', buffer: 'index' },
  { share: 0.1, kind: 'flip', buffer: 'result' },
  { share: 0.07, kind: 'stall' },
  { share: 0.07, kind: 'exit' },
];

/** All faults of a campaign. */
export function faultRuns({ faults, seed }: FaultsInput): FaultRun[] {
  if (!Number.isInteger(faults) || faults < 1) throw new MultirailError('ERR_ARG', `--faults ${faults}: expected a whole number from 1`);
  return Array.from({ length: faults }, (_, i): FaultRun => {
    const prng = new Prng(`campaign 001 ${seed}/${i}`);
    let left = prng.below(1000) / 1000;
    const target =
      TARGETS.find(({ share }) => {
        left -= share;
        return left < 0;
      }) ?? TARGETS[0];
    const isResult = target.buffer === 'result';
    return {
      number: i + 1,
      kind: target.kind,
      rank: isResult ? 0 : prng.below(PRODUCT_RANKS),
      replica: prng.below(2) === 0 ? 'lead' : 'shadow',
      buffer: target.buffer,
      at: isResult ? 1 : prng.below(100) / 100,
      bits: 1 + prng.below(2),
      seed: prng.below(1_000_000),
    };
  });
}

/** As `--inject` takes it. Without replicas it strikes the one process of the rank. */
export function injectText({ kind, rank, replica, buffer, at, bits, seed }: FaultRun, isPaired: boolean): string {
  const where = `rank=${rank},replica=${isPaired ? replica : 'lead'},at=${Math.round(100 * at)}%`;
  if (kind === 'flip') return `flip:${where},buffer=${buffer},bits=${bits},seed=${seed}`;
  return kind === 'exit' ? `exit:${where},code=9` : `stall:${where}`;
}

/** The class of what has become of a fault by replicas; undefined: it should not have come to that. */
export function classOf({ exitCode, isStuck, isRight, said }: FaultEnd): FaultClass | undefined {
  if (isStuck) return undefined;
  if (exitCode === 0) return isRight === true ? correctedAs(said) : undefined;
  if (exitCode !== DIVERGED_CODE) return 'DUE';
  const text = /ERR_DIVERGED: [^\n]*/.exec(said)?.[0];
  if (text === undefined) return undefined;
  if (/ is late: /.test(text)) return 'TOE';
  return /differ: message \d+, a result of /.test(text) ? 'FSC' : 'TDC';
}

/** What two of three replicas have seen of the third one, while the job went on to its right end; LE: nothing. */
function correctedAs(said: string): FaultClass {
  const outvoted = /is outvoted in message \d+, (a result of)?/.exec(said);
  if (outvoted !== null) return outvoted[1] === undefined ? 'TDC' : 'FSC';
  const left = /(?:is to leave|leaves) the job[^\n]*/.exec(said)?.[0];
  if (left !== undefined) return / is late: /.test(left) ? 'TOE' : 'TDC';
  return /; the rank goes on with its other shadow/.test(said) ? 'DUE' : 'LE';
}

/** It was seen, and did not keep the job from its right end. */
export const isCorrected = (end: FaultEnd): boolean => end.exitCode === 0 && ![undefined, 'LE'].includes(classOf(end));

/** Of three replicas a fault of a shadow must be, and one of a lead that changes bytes. Indices lead the program elsewhere. */
const mustBeCorrected = ({ kind, buffer, replica }: FaultRun): boolean => replica === 'shadow' || (kind === 'flip' && buffer !== 'index');

const CONTROL = ['right', 'wrong', 'error', 'stuck'] as const;

/** What has become of it without replicas. */
export function controlOf({ exitCode, isStuck, isRight }: FaultEnd): (typeof CONTROL)[number] {
  if (isStuck) return 'stuck';
  if (exitCode !== 0) return 'error';
  return isRight === true ? 'right' : 'wrong';
}

const whatOf = ({ kind, buffer }: FaultRun): string => (kind === 'flip' ? (buffer as string) : kind);

/** One line for each fault, while the campaign goes on. */
export function faultLine({ fault, paired, single }: FaultPlayed, faults: number): string {
  const { number, kind, rank, replica, at } = fault;
  const what = kind === 'flip' ? `flip in ${whatOf(fault)}` : kind;
  const outcome = `${classOf(paired) ?? 'no class'}${isCorrected(paired) ? ', corrected' : ''}`;
  return `fault ${number} of ${faults}: ${what} at the ${replica} of rank ${rank}, at ${Math.round(100 * at)} %: ${outcome}; without replicas: ${controlOf(single)}`;
}

const countOf = <T>(list: readonly T[], isIt: (one: T) => boolean): number => list.filter(isIt).length;

/** The table, and what is wrong: a job by replicas that ends well with a wrong product, above all. */
export function campaign001(input: FaultsInput, played: readonly FaultPlayed[]): Finding {
  const problems: string[] = [];
  const isVoting = (input.replicas ?? 2) > 2;
  const by = isVoting ? 'three' : 'pairs';
  for (const { fault, paired } of played) {
    const { exitCode, isStuck, isRight, said } = paired;
    if (classOf(paired) !== undefined && !(isVoting && mustBeCorrected(fault) && exitCode !== 0)) continue;
    const what = isStuck
      ? 'has come to no end'
      : exitCode === 0
        ? `ends well, and its product is ${isRight === undefined ? 'not told' : 'wrong'}`
        : `ends with exit code ${exitCode}: ${said.trim().split('\n').at(-1)}`;
    problems.push(`fault ${fault.number} (${injectText(fault, true)}): the job by ${by} ${what}`);
  }
  const totals = CLASSES.map((name) => countOf(played, ({ paired }) => classOf(paired) === name));
  const controls = CONTROL.map((name) => countOf(played, ({ single }) => controlOf(single) === name));
  const wrong = countOf(played, ({ paired }) => paired.exitCode === 0 && paired.isRight !== true);
  for (const [i, name] of CLASSES.entries())
    if (totals[i] < Math.floor(CLASS_SHARE * input.faults))
      problems.push(
        `${name} occurs ${totals[i]} times in ${input.faults} faults, and at least ${Math.floor(CLASS_SHARE * input.faults)} were expected`,
      );
  if (controls[1] < Math.floor(WRONG_SHARE * input.faults))
    problems.push(
      `without replicas ${controls[1]} of ${input.faults} jobs end with a wrong product and no error, and at least ${Math.floor(WRONG_SHARE * input.faults)} were expected: the faults are too harmless`,
    );
  const rows = [...new Set(played.map(({ fault }) => whatOf(fault)))].sort().map((name) => {
    const own = played.filter(({ fault }) => whatOf(fault) === name);
    return [
      name,
      String(own.length),
      ...CLASSES.map((one) => String(countOf(own, ({ paired }) => classOf(paired) === one))),
      ...CONTROL.map((one) => String(countOf(own, ({ single }) => controlOf(single) === one))),
    ];
  });
  const corrected = CLASSES.slice(1).map((name) => countOf(played, ({ paired }) => classOf(paired) === name && isCorrected(paired)));
  const list = (names: readonly string[], counts: readonly number[]): string => names.map((name, i) => `${counts[i]} ${name}`).join(', ');
  return {
    lines: [
      `Paper 001: ${input.faults} faults in a matrix product on ${PRODUCT_RANKS} ranks${isVoting ? ' of three replicas' : ''}, order ${PRODUCT_RANKS * PRODUCT_ROWS}; seed ${input.seed}.`,
      'LE: no effect; TDC: found in what is sent; FSC: found in the result; TOE: a replica does not come; DUE: a process ends.',
      '',
      ...columns([['struck', 'faults', ...CLASSES, ...CONTROL.map((name) => `alone: ${name}`)], ...rows]),
      '',
      ...(isVoting
        ? [
            `Corrected, so that the job came to its right end without being started again: ${CLASSES.slice(1)
              .map((name, i) => `${corrected[i]} of ${totals[i + 1]} ${name}`)
              .join(', ')}.`,
          ]
        : []),
      `With replicas: ${list(CLASSES, totals)}; wrong products: ${wrong} (${percent(wrong / played.length, 1)}). Without: ${list(CONTROL, controls)}; wrong products: ${controls[1]} (${percent(controls[1] / played.length, 1)}).`,
    ],
    data: {
      ...input,
      played: played.map(({ fault, paired, single }) => ({
        ...{ fault, class: classOf(paired), alone: controlOf(single) },
        ...(isVoting ? { isCorrected: isCorrected(paired) } : {}),
      })),
    },
    problems,
  };
}
