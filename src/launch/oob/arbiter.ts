// Who is taken for dead though nobody saw the process end, as the server of a job judges it: processes that others report as out of reach, and
// processes that it does not hear of itself. Where the others go on, a network that has fallen apart must not do so in two parts. Pure: it
// looks at the members, and is given the time.
import { goesOn, whoGoes } from '../../util/partition.ts';
import type { Member } from './member.ts';
import { judgeSilence, type SilenceLimits } from './silence.ts';

/** The first report that would give somebody up is followed by those of others that have lost the same host: so long they are waited for. */
export const ARBITER_WAIT_MS = 1000;
/** So long after the last word from a process its silence begins to mean something. */
const SILENT_MS = 3000;

interface Report {
  readonly by: number;
  readonly about: number;
  readonly forMs: number;
  /** When it said that it would give the other up. */
  readonly finalAtMs: number | undefined;
}

export interface ArbiterVerdict {
  readonly number: number;
  /** A sentence about it, with its rank. */
  readonly text: string;
}

export class Arbiter {
  /** All processes of the job, by number. */
  private readonly members: readonly Member[];
  private readonly limits: SilenceLimits;
  /** The others go on when one is dead: only the majority may take others for dead because they cannot be reached. */
  private readonly goOn: boolean;
  private readonly reports = new Map<string, Report>();

  constructor(members: readonly Member[], limits: SilenceLimits, goOn: boolean) {
    this.members = members;
    this.limits = limits;
    this.goOn = goOn;
  }

  /** `by` has had no rail to `about` for so long; `isFinal`: for so long that it would give it up. */
  take(by: number, about: number, forMs: number, isFinal: boolean, nowMs: number): void {
    if (by === about || about >= this.members.length) return;
    const key = `${by}/${about}`;
    const finalAtMs = this.reports.get(key)?.finalAtMs ?? (isFinal ? nowMs : undefined);
    this.reports.set(key, { by, about, forMs, finalAtMs });
  }

  /** Who is taken for dead now. */
  judge(nowMs: number): ArbiterVerdict[] {
    const texts = new Map<number, string>();
    this.judgeSilent(nowMs, texts);
    if (this.reports.size === 0) return verdictsOf(texts);
    this.dropReports(({ by, about }) => this.members[by].exit !== undefined || this.members[about].exit !== undefined);
    this.judgeReported(nowMs, texts);
    this.judgePairs(nowMs, texts);
    this.dropReports(({ by, about }) => texts.has(by) || texts.has(about));
    return verdictsOf(texts);
  }

  private judgeSilent(nowMs: number, texts: Map<number, string>): void {
    const limits = this.isLeftBehind()
      ? { ...this.limits, reconnectTimeoutMs: Math.min(SILENT_MS, this.limits.reconnectTimeoutMs) }
      : this.limits;
    for (const member of this.members) {
      const silence = member.isOwned || member.exit !== undefined ? undefined : judgeSilence(member, nowMs, limits);
      if (silence !== undefined && (silence.isCertain || this.hearsMajority(nowMs))) texts.set(member.rank, silence.text);
    }
  }

  /** All others have come to their end, which they do together: they have left without those that nothing is heard of. */
  private isLeftBehind(): boolean {
    return (
      this.goOn &&
      this.members.some(({ exit }) => exit?.finalized) &&
      this.members.every((member) => member.exit !== undefined || isCut(member))
    );
  }

  /** A rank reaches it no more, and the server does not hear of it, either: its host is gone, or cut off. */
  private judgeReported(nowMs: number, texts: Map<number, string>): void {
    for (const { about, by, forMs } of this.reports.values()) {
      const member = this.members[about];
      const silentMs = nowMs - member.lastContactMs;
      if (!isCut(member) || silentMs < forMs || !this.hearsMajority(nowMs)) continue;
      texts.set(about, `${nameOf(member)} was not heard of for ${Math.round(silentMs)} ms, and no rail leads to it from rank ${by}`);
    }
  }

  /** Whoever would be given up goes, where the server does not hear of it; else one of the two, since both would go on. */
  private judgePairs(nowMs: number, texts: Map<number, string>): void {
    const finals = [...this.reports.values()].filter(
      ({ by, about, finalAtMs }) => finalAtMs !== undefined && !texts.has(by) && !texts.has(about),
    );
    const oldest = Math.min(...finals.map(({ finalAtMs }) => finalAtMs as number));
    if (nowMs - oldest < ARBITER_WAIT_MS) return;
    const isHeard = (member: Member): boolean => member.isOwned || nowMs - member.lastContactMs < SILENT_MS;
    const isMajority = this.isMajority(isHeard);
    const pairs: [number, number][] = [];
    for (const { by, about } of finals) {
      if (isHeard(this.members[about])) pairs.push([by, about]);
      else if (isMajority)
        texts.set(about, `${nameOf(this.members[about])} is taken for dead: nothing leads to it, from rank ${by} and from here`);
    }
    for (const number of whoGoes(pairs.filter(([by, about]) => !texts.has(by) && !texts.has(about)))) {
      const others = pairs.flatMap(([by, about]) => (about === number ? [by] : by === number ? [about] : []));
      const names = [...new Set(others)].sort((a, b) => a - b).join(', ');
      const why = `no rail connects it with rank ${names}, and one of them has to go (ft_partition)`;
      texts.set(number, `${nameOf(this.members[number])} is taken for dead: ${why}`);
    }
  }

  private dropReports(isOver: (report: Report) => boolean): void {
    for (const [key, report] of this.reports) if (isOver(report)) this.reports.delete(key);
  }

  /** Whether the processes that the server hears of, or whose kernels answer, are the part that goes on. */
  private hearsMajority(nowMs: number): boolean {
    return this.isMajority((member) => !isCut(member) || nowMs - member.lastContactMs < SILENT_MS);
  }

  private isMajority(isHeard: (member: Member) => boolean): boolean {
    if (!this.goOn) return true;
    const base = this.members.filter(({ exit, info, standsBy }) => exit === undefined && info !== undefined && !standsBy);
    // Nobody is here who could go on: what is judged ends the server, and nobody else.
    if (!base.some(isHeard)) return true;
    return goesOn(
      base.map(({ rank }) => rank),
      (number) => isHeard(this.members[number]),
    );
  }
}

/** Nothing leads to its host: where its owner waits for the process, that one knows better. */
function isCut({ isOwned, lifeline }: Member): boolean {
  return !isOwned && lifeline === undefined;
}

function nameOf({ rank, info }: Member): string {
  return info === undefined ? `rank ${rank}` : `rank ${rank} (pid ${info.pid})`;
}

const verdictsOf = (texts: Map<number, string>): ArbiterVerdict[] => [...texts].map(([number, text]) => ({ number, text }));
