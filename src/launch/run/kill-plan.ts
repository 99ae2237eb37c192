// Deaths by plan, for tests and trials of programs that survive them: which ranks `multirail run --kill` strikes with SIGKILL, and when. Times
// count from the moment at which all processes have met. A rank is that of the communicator at work at that time; #NUMBER names a process.
import { MultirailError } from '../../errors.ts';
import { Prng } from '../../util/prng.ts';

/** Who is struck, a rank of the working communicator or a process of the job, and when. */
export interface Kill {
  readonly whom: 'rank' | 'process';
  readonly number: number;
  readonly atMs: number;
}

export type KillPlan =
  | { readonly kind: 'listed'; readonly kills: readonly Kill[] }
  /** Failures as of a machine: independent of each other, so many milliseconds apart on the average, at most `max` of them. */
  | { readonly kind: 'random'; readonly seed: string; readonly mtbfMs: number; readonly max: number };

const EXPECTED =
  'expected RANK@TIME, such as 2@1s or 0@500ms, or #PROCESS@TIME, several of them with commas between, or random:seed=S,mtbf=T,max=N, such as random:seed=1,mtbf=5s,max=3';

function refuse(text: string): never {
  throw new MultirailError('ERR_ARG', `--kill "${text}": ${EXPECTED}`);
}

function parseMs(time: string, text: string): number {
  const match = /^(\d+(?:\.\d+)?)(ms|s|m)$/.exec(time);
  if (match === null) refuse(text);
  return Number(match[1]) * { ms: 1, s: 1000, m: 60_000 }[match[2] as 'ms' | 's' | 'm'];
}

/** Reads the argument of --kill. Throws ERR_ARG for what is no plan. */
export function parseKillPlan(text: string): KillPlan {
  if (!text.startsWith('random:')) {
    const kills = text.split(',').map((one) => {
      const match = /^(#?)(\d{1,7})@(.+)$/.exec(one);
      if (match === null) refuse(text);
      const whom = match[1] === '#' ? ('process' as const) : ('rank' as const);
      return { whom, number: Number(match[2]), atMs: parseMs(match[3], text) };
    });
    return { kind: 'listed', kills };
  }
  const given = new Map(
    text
      .slice('random:'.length)
      .split(',')
      .map((pair) => pair.split('=', 2) as [string, string]),
  );
  const { seed = '0', mtbf = '', max = String(Number.MAX_SAFE_INTEGER), ...others } = Object.fromEntries(given) as Record<string, string>;
  if (Object.keys(others).length > 0 || !/^\d+$/.test(max) || Number(max) < 1 || seed === '') refuse(text);
  const mtbfMs = parseMs(mtbf, text);
  if (mtbfMs <= 0) refuse(text);
  return { kind: 'random', seed, mtbfMs, max: Number(max) };
}

/** Throws ERR_ARG where a plan names ranks or processes that the job will not have. */
export function checkKills(plan: KillPlan, ranks: number, processes: number): void {
  if (plan.kind !== 'listed') return;
  for (const { whom, number } of plan.kills) {
    const count = whom === 'rank' ? ranks : processes;
    if (number < count) continue;
    const names = whom === 'rank' ? `rank ${number}, but ranks go` : `process ${number}, but processes go`;
    throw new MultirailError('ERR_ARG', `--kill names ${names} from 0 to ${count - 1}`);
  }
}

/** What a plan strikes at: processes of the job, by number. */
export interface KillTargets {
  /** The process that is at work as that rank. */
  numberOf(rank: number): number | undefined;
  isLiving(number: number): boolean;
  /** Processes that are at work or were, ascending. */
  working(): readonly number[];
  strike(number: number): void;
  say(text: string): void;
}

export class Killer {
  private readonly plan: KillPlan;
  private readonly targets: KillTargets;
  private readonly timers = new Set<NodeJS.Timeout>();
  /** Listed kills that have not been carried out, in words. */
  private readonly open: Set<string>;
  private struck = 0;
  /** Processes that were struck: their end becomes known a little later. */
  private readonly hit = new Set<number>();
  private hasBegun = false;

  constructor(plan: KillPlan, targets: KillTargets) {
    this.plan = plan;
    this.targets = targets;
    this.open = new Set(plan.kind === 'listed' ? plan.kills.map(wordsOf) : []);
  }

  /** All ranks have met. */
  begin(): void {
    if (this.hasBegun) return;
    this.hasBegun = true;
    const { plan } = this;
    if (plan.kind === 'random') return this.strikeNext(plan, new Prng(`kills of ${plan.seed}`));
    for (const kill of plan.kills) {
      this.after(kill.atMs, () => {
        const number = kill.whom === 'process' ? kill.number : this.targets.numberOf(kill.number);
        if (number === undefined || !this.isLiving(number)) return;
        this.open.delete(wordsOf(kill));
        this.strike(number, kill.whom === 'rank' ? kill.number : undefined);
      });
    }
  }

  private after(ms: number, act: () => void): void {
    const timer = setTimeout(() => {
      this.timers.delete(timer);
      act();
    }, ms);
    this.timers.add(timer);
  }

  private strikeNext(plan: KillPlan & { kind: 'random' }, prng: Prng): void {
    if (this.struck >= plan.max) return;
    // A Poisson process: the time to the next failure does not depend on the last one.
    const share = (prng.nextU32() + 1) / 2 ** 32;
    this.after(-Math.log(share) * plan.mtbfMs, () => {
      const living = this.targets.working().filter((number) => this.isLiving(number));
      // The last one has nobody who would go on.
      if (living.length > 1) this.strike(prng.pick(living));
      this.strikeNext(plan, prng);
    });
  }

  private isLiving(number: number): boolean {
    return !this.hit.has(number) && this.targets.isLiving(number);
  }

  private strike(number: number, rank?: number): void {
    this.struck++;
    this.hit.add(number);
    const name = rank === undefined ? `process ${number}` : `rank ${rank}${number === rank ? '' : ` (process ${number})`}`;
    this.targets.say(`--kill: killing ${name}`);
    this.targets.strike(number);
  }

  /** No kill comes any more: the job has ended. Returns what the plan asked for and was not carried out; undefined when all was. */
  end(): string | undefined {
    for (const timer of this.timers) clearTimeout(timer);
    this.timers.clear();
    if (this.plan.kind === 'random')
      return this.struck === 0 ? 'no rank was killed: the job had ended before the first time that came up' : undefined;
    if (this.open.size === 0) return undefined;
    return `${[...this.open].join(', ')} could not be carried out: the rank, or the job, had ended before`;
  }
}

function wordsOf({ whom, number, atMs }: Kill): string {
  return `${whom === 'process' ? '#' : ''}${number}@${atMs}ms`;
}
