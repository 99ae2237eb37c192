// Deaths by plan, for tests and trials of programs that survive them: which ranks `multirail run --kill` strikes with SIGKILL, and when. Times
// count from the moment at which all ranks have met.
import { MultirailError } from '../../errors.ts';
import { Prng } from '../../util/prng.ts';

export type KillPlan =
  | { readonly kind: 'listed'; readonly kills: readonly { readonly rank: number; readonly atMs: number }[] }
  /** Failures as of a machine: independent of each other, so many milliseconds apart on the average, at most `max` of them. */
  | { readonly kind: 'random'; readonly seed: string; readonly mtbfMs: number; readonly max: number };

const EXPECTED =
  'expected RANK@TIME, such as 2@1s or 0@500ms, several of them with commas between, or random:seed=S,mtbf=T,max=N, such as random:seed=1,mtbf=5s,max=3';

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
      const match = /^(\d{1,7})@(.+)$/.exec(one);
      if (match === null) refuse(text);
      return { rank: Number(match[1]), atMs: parseMs(match[2], text) };
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

/** What a plan strikes at. */
export interface KillTargets {
  /** Working ranks that live, ascending. */
  living(): readonly number[];
  strike(rank: number): void;
  say(text: string): void;
}

export class Killer {
  private readonly plan: KillPlan;
  private readonly targets: KillTargets;
  private readonly timers = new Set<NodeJS.Timeout>();
  /** Listed kills that have not been carried out, in words. */
  private readonly open: Set<string>;
  private struck = 0;
  /** Ranks that were struck: their end becomes known a little later. */
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
        if (!this.living().includes(kill.rank)) return;
        this.open.delete(wordsOf(kill));
        this.strike(kill.rank);
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
      const living = this.living();
      // The last one has nobody who would go on.
      if (living.length > 1) this.strike(prng.pick(living));
      this.strikeNext(plan, prng);
    });
  }

  private living(): number[] {
    return this.targets.living().filter((rank) => !this.hit.has(rank));
  }

  private strike(rank: number): void {
    this.struck++;
    this.hit.add(rank);
    this.targets.say(`--kill: killing rank ${rank}`);
    this.targets.strike(rank);
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

function wordsOf({ rank, atMs }: { rank: number; atMs: number }): string {
  return `${rank}@${atMs}ms`;
}
