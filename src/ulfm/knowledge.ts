// What this process knows of the processes of its job: who belongs to it, who is dead by whose word, who has left, and whether this process
// has been declared dead itself. A number is never given twice and the dead stay dead, so knowledge only grows.
import { indexIn, ringNeighbours } from './graphs.ts';

/** By what a death is known. A notice carries the number. */
export const EVIDENCE = {
  /** The launcher or its agent has waited for the process, or the starter of the job says that it ended. */
  ENDED: 1,
  /** Its pidfd became readable at a process of its host. */
  PIDFD: 2,
  /** Its socket closed, and there is no process with its pid and start time on its host. */
  PROCESS_GONE: 3,
  /** The kernel ended its lifeline and it did not come back. */
  LIFELINE: 4,
  /** All rails are closed and every address refuses connections. */
  REFUSED: 5,
  /** A peer refused it as one that has failed. */
  PEER_FAILED: 6,
  /** A newer process has taken its index. */
  REPLACED: 7,
  /** Its host is silent on everything, as two other hosts or the server see it. */
  HOST_SILENT: 8,
  /** An agreement names it as failed. */
  AGREED: 9,
} as const;
export type Evidence = (typeof EVIDENCE)[keyof typeof EVIDENCE];

export const EVIDENCE_TEXTS: Readonly<Record<number, string>> = {
  [EVIDENCE.ENDED]: 'its process ended',
  [EVIDENCE.PIDFD]: 'its process ended, as the kernel of its host says',
  [EVIDENCE.PROCESS_GONE]: 'its process is gone from its host',
  [EVIDENCE.LIFELINE]: 'its connection to the launcher ended',
  [EVIDENCE.REFUSED]: 'all its addresses refuse connections',
  [EVIDENCE.PEER_FAILED]: 'a peer refused it as one that has failed',
  [EVIDENCE.REPLACED]: 'a newer process has taken its place',
  [EVIDENCE.HOST_SILENT]: 'its host has been silent for too long',
  [EVIDENCE.AGREED]: 'the members of a communicator have agreed that it failed',
};

/** The word that a process is dead. */
export interface Notice {
  /** Given by the server of the job; 0 until its copy has come. */
  readonly serial: number;
  readonly number: number;
  readonly incarnation: number;
  readonly evidence: number;
  readonly text: string;
}

/** Of so many deaths those that join later are told here. */
const RECENT_MAX = 64;

/** What came of a notice. */
export type NoticeOutcome = 'news' | 'known' | 'older incarnation' | 'own death';

export class Knowledge {
  readonly self: number;
  readonly incarnation: number;
  /** Incarnations of the processes of the job, by number. */
  private readonly processes = new Map<number, number>();
  /** Notices of the dead, by number: the first of each, with the serial of the server's as soon as that has come. */
  private readonly failures = new Map<number, Notice>();
  /**
   * The last deaths that were news here, the oldest first. Who joins is told of deaths by the server, which may not have known these then, and may
   * be gone since; the flood went by before anybody knew of it.
   */
  private readonly lastNews: Notice[] = [];
  private readonly departed = new Set<number>();
  /** Ascending. Made when it is asked for. */
  private livingNumbers: number[] | undefined;
  /** This process has been declared dead: nothing that it does counts any more. */
  ownDeath: Notice | undefined;

  constructor(self: number, incarnation: number) {
    this.self = self;
    this.incarnation = incarnation;
    this.processes.set(self, incarnation);
  }

  /** A process belongs to the job. Its death may have been heard of before it. */
  addProcess(number: number, incarnation: number): void {
    if (number === this.self) return;
    this.processes.set(number, incarnation);
    const notice = this.failures.get(number);
    if (notice !== undefined && notice.incarnation < incarnation) this.failures.delete(number);
    this.livingNumbers = undefined;
  }

  /**
   * Takes a notice, whoever brings it and however often. One of an older incarnation than the one that is known here says nothing of that
   * one. A notice of a newer incarnation than ours says that another process has our number: then everybody refuses us, too.
   */
  take(notice: Notice): NoticeOutcome {
    const { number, incarnation } = notice;
    if (number === this.self) {
      if (incarnation < this.incarnation) return 'older incarnation';
      if (this.ownDeath !== undefined) return 'known';
      this.ownDeath = notice;
      return 'own death';
    }
    if (incarnation < (this.processes.get(number) ?? 0)) return 'older incarnation';
    const before = this.failures.get(number);
    if (before !== undefined) {
      if (before.serial === 0 && notice.serial > 0) this.failures.set(number, { ...before, serial: notice.serial });
      return 'known';
    }
    this.failures.set(number, notice);
    this.livingNumbers = undefined;
    this.lastNews.push(notice);
    if (this.lastNews.length > RECENT_MAX) this.lastNews.shift();
    return 'news';
  }

  /** What had become of a process before this one joined the job: its death is news to nobody. */
  takeOld(notice: Notice): void {
    if (notice.number === this.self || this.failures.has(notice.number)) return;
    this.failures.set(notice.number, notice);
    this.livingNumbers = undefined;
  }

  /** The process has said BYE: it takes part in nothing any more, and has not failed. */
  leave(number: number): boolean {
    if (number === this.self || this.departed.has(number)) return false;
    this.departed.add(number);
    this.livingNumbers = undefined;
    return true;
  }

  /** Some process of the job is known to be dead. */
  get hasFailures(): boolean {
    return this.failures.size > 0;
  }

  isFailed(number: number): boolean {
    return this.failures.has(number);
  }

  /** Dead, or left: nothing comes from it any more. */
  isGone(number: number): boolean {
    return this.failures.has(number) || this.departed.has(number);
  }

  noticeOf(number: number): Notice | undefined {
    return this.failures.get(number);
  }

  incarnationOf(number: number): number | undefined {
    return this.processes.get(number);
  }

  /** Numbers of all processes that belong to the job, or did, as far as it is known here. */
  get numbers(): Iterable<number> {
    return this.processes.keys();
  }

  /** Numbers of the processes that are not known to be gone, this one among them, ascending. */
  get living(): readonly number[] {
    this.livingNumbers ??= [...this.processes.keys()].filter((number) => !this.isGone(number)).sort((a, b) => a - b);
    return this.livingNumbers;
  }

  /** What a process has to be told that has become known here only now; nothing where others do. */
  newsFor(number: number): readonly Notice[] {
    if (this.lastNews.length === 0 || this.isGone(number) || !this.neighbours.includes(number)) return [];
    return this.lastNews.filter((notice) => this.failures.has(notice.number));
  }

  /** Whom this process tells of a death that is news to it. */
  get neighbours(): number[] {
    const all = [...new Set([...this.processes.keys(), ...this.failures.keys()])].sort((a, b) => a - b);
    const places = ringNeighbours(all.length, indexIn(all, this.self), (place) => this.isGone(all[place]));
    return places.map((place) => all[place]);
  }
}

/** The failed members of one communicator as its user sees them: which are known here, and which of them are acknowledged. */
export class FailedMembers {
  /** Ranks, ascending. */
  private readonly known: number[] = [];
  private readonly acknowledged = new Set<number>();
  /** As get() showed them last: what a count counts. */
  private shown: readonly number[] | undefined;

  add(rank: number): void {
    if (this.known.includes(rank)) return;
    this.known.push(rank);
    this.known.sort((a, b) => a - b);
  }

  /** Another process has taken the place of that rank. */
  revive(rank: number): void {
    const at = this.known.indexOf(rank);
    if (at >= 0) this.known.splice(at, 1);
    this.acknowledged.delete(rank);
    this.shown = undefined;
  }

  /** Ranks that are known here to have failed, ascending; another member may know of more. */
  get(): readonly number[] {
    this.shown = [...this.known];
    return this.shown;
  }

  /**
   * Acknowledges the first `count` of what get() returned last, or all that are known here, and returns how many are acknowledged in all.
   * A failure that became known in between may have a lower rank: counted in a newer list, one would be acknowledged that nobody was shown.
   */
  acknowledge(count?: number): number {
    const ranks = count === undefined ? this.known : (this.shown ?? this.known).slice(0, count);
    for (const rank of ranks) if (this.known.includes(rank)) this.acknowledged.add(rank);
    return this.acknowledged.size;
  }

  isAcknowledged(rank: number): boolean {
    return this.acknowledged.has(rank);
  }

  /** Ranks, in no order. */
  get acknowledgedRanks(): Iterable<number> {
    return this.acknowledged;
  }

  /** Some failure is known here and not acknowledged: receives from anybody report it. */
  get hasUnacknowledged(): boolean {
    return this.acknowledged.size < this.known.length;
  }
}
