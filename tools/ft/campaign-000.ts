// `multirail ft campaign 000`: the scheme of paper 000 on real processes. Each run is a job in which a chosen set of ranks dies at the same
// step; all others go back, and at the end the result is compared with that of a job in which nobody dies. What they went back to is compared
// with the recovery line that the scheme promises for that set. Here: which sets, and the verdict. The jobs are in tools/cli/ft-campaign.ts.
import { MultirailError } from '../../src/errors.ts';
import { recoveryLine } from '../../src/ft/plan/recovery-line.ts';
import { domainsNeeded, formulaTolerance, type Scheme, smallestLoss } from '../../src/ft/plan/scheme.ts';
import { Prng } from '../../src/util/prng.ts';
import { columns, type Finding } from './papers.ts';

/** Steps between two saves, and how many saves follow those that all runs have. */
const EVERY_STEPS = 2;
const SAVES_MORE = 8;

export interface CampaignInput {
  readonly scheme: Scheme;
  /** `mnf`: random sets of as many as formula (2) survives; `worst`: a smallest set that destroys all saves; or sets of ranks. */
  readonly sets: 'mnf' | 'worst' | readonly (readonly number[])[];
  readonly runs: number;
  readonly seed: number;
}

/** One job. */
export interface CampaignRun {
  readonly failed: readonly number[];
  /** They die when they have come to this step. */
  readonly atStep: number;
  readonly everySteps: number;
  readonly steps: number;
  readonly scheme: Scheme;
  /** What the scheme promises: the save that all go back to; undefined when none is whole. */
  readonly promised: number | undefined;
}

/** What rank 0 says at the end of a job; undefined when the job came to no end. */
export interface CampaignOutcome {
  readonly digest: string;
  readonly save: number | undefined;
  readonly level: string | undefined;
  /** Places that were taken. */
  readonly failures: number;
}

function drawSet({ scheme, sets }: CampaignInput, prng: Prng, run: number): number[] {
  const all = Array.from({ length: scheme.domains }, (_, rank) => rank);
  if (sets === 'mnf') return prng.shuffle(all).slice(0, formulaTolerance(scheme.duplication, scheme.depth));
  if (sets !== 'worst') return [...sets[run % sets.length]];
  const loss = smallestLoss(scheme);
  if (loss === undefined)
    throw new MultirailError('ERR_ARG', `--sets worst: sets of ${scheme.domains} domains with depth ${scheme.depth} are not searched`);
  // The scheme looks the same from every domain.
  const turn = prng.below(scheme.domains);
  return loss.map((rank) => (rank + turn) % scheme.domains);
}

/** The jobs of a campaign: the same for the same seed. */
export function campaignRuns(input: CampaignInput): CampaignRun[] {
  const { scheme, sets, runs, seed } = input;
  if (sets === 'mnf' && formulaTolerance(scheme.duplication, scheme.depth) === 0)
    throw new MultirailError('ERR_ARG', '--sets mnf with --df 0: nothing survives without copies; name a set, such as --sets 1');
  if (typeof sets !== 'string') {
    const wrong = sets.flat().find((rank) => !(Number.isInteger(rank) && rank >= 0 && rank < scheme.domains));
    if (wrong !== undefined || sets.some((set) => set.length === 0 || new Set(set).size !== set.length))
      throw new MultirailError('ERR_ARG', `--sets: expected different ranks from 0 to ${scheme.domains - 1}, as in 0,1,2,8 or 0,1;2,3`);
  }
  const prng = new Prng(`campaign 000 ${seed}`);
  return Array.from({ length: runs }, (_, run): CampaignRun => {
    const failed = drawSet(input, prng, run).sort((a, b) => a - b);
    const steps = EVERY_STEPS * (scheme.depth + SAVES_MORE);
    const atStep = prng.between(EVERY_STEPS * scheme.depth, steps - 1);
    const kEnd = Math.floor(atStep / EVERY_STEPS) - 1;
    const promised = recoveryLine(kEnd, failed, scheme)?.save;
    return { failed, atStep, everySteps: EVERY_STEPS, steps, scheme, promised };
  });
}

/** What is wrong with the outcome of a job; none when all is as promised. */
export function judgeRun({ failed, promised }: CampaignRun, outcome: CampaignOutcome | undefined, expected: string): string[] {
  const set = `ranks ${failed.join(', ')}`;
  if (outcome === undefined) return [`${set}: the job came to no end`];
  const wrong: string[] = [];
  if (outcome.digest !== expected) wrong.push(`${set}: the result differs from that of a job in which nobody dies`);
  if (outcome.failures !== failed.length) wrong.push(`${set}: ${outcome.failures} places were taken, and ${failed.length} ranks died`);
  const came = outcome.save === undefined ? 'the beginning' : `save ${outcome.save}`;
  const wanted = promised === undefined ? 'the beginning' : `save ${promised}`;
  if (came !== wanted) wrong.push(`${set}: all went back to ${came}; the recovery line is ${wanted}`);
  return wrong;
}

/** One line for each run, while the campaign goes on. */
export function runLine(number: number, runs: number, { failed, atStep }: CampaignRun, outcome: CampaignOutcome | undefined): string {
  const who = failed.length === 1 ? `rank ${failed[0]} dies` : `ranks ${failed.join(', ')} die`;
  const after = `run ${number} of ${runs}: ${who} at step ${atStep}`;
  if (outcome === undefined) return `${after}: the job came to no end`;
  return `${after}: all go back to ${outcome.save === undefined ? 'the beginning' : `save ${outcome.save} in ${outcome.level}`}`;
}

/** The campaign in a table, and what was wrong. */
export function campaign000(
  input: CampaignInput,
  played: readonly { readonly run: CampaignRun; readonly outcome: CampaignOutcome | undefined }[],
  expected: string,
): Finding {
  const { scheme, sets } = input;
  const { domains, duplication, depth } = scheme;
  const problems = played.flatMap(({ run, outcome }) => judgeRun(run, outcome, expected));
  const resumed = played.filter(({ outcome }) => outcome?.save !== undefined).length;
  const lost = played.filter(({ outcome }) => outcome !== undefined && outcome.save === undefined).length;
  // Formula (2) says that no such set is lost, from its bound on.
  if (sets === 'mnf' && domains >= domainsNeeded(duplication, depth) && resumed < played.length)
    problems.push(
      `${played.length - resumed} of ${played.length} sets of ${formulaTolerance(duplication, depth)} did not go back to a save`,
    );
  if (sets === 'worst' && lost < played.length) problems.push(`${played.length - lost} of ${played.length} worst sets were no loss`);
  const rows = [
    ['domains, DF, SD', `${domains}, ${duplication}, ${depth}`],
    [
      'MNF by formula (2)',
      `${formulaTolerance(duplication, depth)}${domains < domainsNeeded(duplication, depth) ? ' (too few domains for it)' : ''}`,
    ],
    ['jobs', String(played.length)],
    ['went back to a save in memory', String(resumed)],
    ['began from the beginning', String(lost)],
    ['with the result of a job in which nobody dies', String(played.filter(({ outcome }) => outcome?.digest === expected).length)],
  ];
  return { lines: columns(rows), data: { ...input, expected, played }, problems };
}
