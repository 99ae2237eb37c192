// Peers that no rail leads to, where the parameter ft is on: whether they are given up, waited for, or whether it is this process that goes. With
// ft_partition = arbiter the server of the job is asked, as long as it is there; the rules are those of src/util/partition.ts.
import type { ParamTable } from '../../params.ts';
import type { Engine } from '../../progress/engine.ts';
import { EVIDENCE } from '../../ulfm/knowledge.ts';
import type { Ulfm } from '../../ulfm/ulfm.ts';
import { goesOn } from '../../util/partition.ts';

/** What the parameter ft_partition may be. */
export type PartitionPolicy = 'arbiter' | 'majority' | 'none';

/** What becomes of a peer that is out of reach: its requests wait, or it is given up, or this process is, or it has ended for certain. */
export type PartitionVerdict = 'wait' | 'fail' | 'leave' | 'gone';

export interface PartitionOptions {
  readonly policy: PartitionPolicy;
  /** Refusals this far apart say that nobody is there (ft_refused_ms). */
  readonly refusedMs: number;
  /** For so long nothing leads to a peer before the server hears of it (ft_host_timeout_ms), and before it is given up (pml_peer_timeout_ms). */
  readonly hostTimeoutMs: number;
  readonly peerTimeoutMs: number;
  /** The server of the job is there, or may come back. */
  hasServer(): boolean;
  /** Tells the server that nothing leads to that peer; `isFinal`: it would be given up now. */
  report(number: number, forMs: number, isFinal: boolean): void;
}

/** What this uses of the channel to the server. */
interface ServerChannel {
  readonly lost?: string | undefined;
  unreachable?(number: number, forMs: number, isFinal: boolean): void;
}

export function partitionOptions(params: Pick<ParamTable, 'int' | 'string'>, server: ServerChannel | undefined): PartitionOptions {
  return {
    policy: params.string('ft_partition') as PartitionPolicy,
    refusedMs: params.int('ft_refused_ms'),
    hostTimeoutMs: params.int('ft_host_timeout_ms'),
    peerTimeoutMs: params.int('pml_peer_timeout_ms'),
    hasServer: () => server?.unreachable !== undefined && server.lost === undefined,
    report: (number, forMs, isFinal) => server?.unreachable?.(number, forMs, isFinal),
  };
}

/** Processes as this one sees them. */
export interface PartitionView {
  /** Numbers of those that work and of whose death nobody is certain, this one among them. */
  base(): readonly number[];
  isReachable(number: number): boolean;
  /** Every rail to it was refused by the kernel of its host when it was dialled last: how often they were dialled; undefined: not so. */
  refusedDials(number: number): number | undefined;
  /** Where the other side dials it is asked to, so that the kernel of its host says whether it is there. */
  ask(number: number): void;
}

/** The view of a process through its rails and what it knows of deaths. */
export function partitionView({ bml }: Pick<Engine, 'bml'>, { knowledge, standbys }: Ulfm, self: number): PartitionView {
  return {
    base: () =>
      [...knowledge.numbers].filter((number) => {
        const notice = knowledge.noticeOf(number);
        // Whoever is merely out of reach may live, also when it was given up.
        if (notice !== undefined) return notice.evidence === EVIDENCE.HOST_SILENT;
        return !knowledge.isGone(number) && (number === self || !standbys.ready.includes(number));
      }),
    isReachable: (number) => {
      if (knowledge.isFailed(number)) return false;
      const peer = bml.peers.get(number);
      return peer === undefined || peer.unreachableSinceAliveMs < 0;
    },
    refusedDials: (number) => {
      const rails = bml.peers.get(number)?.rails ?? [];
      if (rails.length === 0 || !rails.every(({ lastReason }) => lastReason?.isNobody === true)) return undefined;
      return Math.min(...rails.map(({ counters }) => counters.connectAttempts));
    },
    ask: (number) => {
      const peer = bml.peers.get(number);
      if (peer !== undefined && number < self) peer.mustAsk = true;
    },
  };
}

/** A server that does not answer within so many time-outs of a peer counts as lost. */
const ANSWER_TIMEOUTS = 2;

export class PartitionWatch {
  private readonly options: PartitionOptions;
  private readonly view: PartitionView;
  /** Peers of which the server has been told, and whether for the last time. */
  private readonly told = new Map<number, boolean>();
  /** Peers that are refused by the kernels of their hosts: since when, and how often they were dialled until then. */
  private readonly refused = new Map<number, { readonly forMs: number; readonly dials: number }>();

  constructor(options: PartitionOptions, view: PartitionView) {
    this.options = options;
    this.view = view;
  }

  /** Judges a peer to which nothing has led for so long, by the time in which this process was looking. Asked again and again. */
  judge(number: number, forMs: number): PartitionVerdict {
    const { options, view } = this;
    const { policy, peerTimeoutMs } = options;
    if (forMs >= options.refusedMs) view.ask(number);
    const hasServer = policy === 'arbiter' && options.hasServer();
    if (this.isGone(number, forMs, hasServer ? options.hostTimeoutMs : options.refusedMs)) return 'gone';
    if (hasServer && forMs < peerTimeoutMs * ANSWER_TIMEOUTS) {
      this.tell(number, forMs);
      return 'wait';
    }
    if (forMs < peerTimeoutMs) return 'wait';
    return policy === 'none' || goesOn(view.base(), (one) => view.isReachable(one)) ? 'fail' : 'leave';
  }

  /** In a sentence about this process. */
  get whyItLeaves(): string {
    const base = this.view.base();
    const reached = base.filter((number) => this.view.isReachable(number)).length;
    const which = `${reached} of the ${base.length} processes that may live, itself among them, and no server of the job`;
    return `it reaches ${which}: those that reach more go on without it (ft_partition)`;
  }

  /** The kernel of its host answers, so the network is whole, and it has nobody there: not once, but for a while. */
  private isGone(number: number, forMs: number, refusedMs: number): boolean {
    const dials = this.view.refusedDials(number);
    const first = this.refused.get(number);
    if (dials === undefined) this.refused.delete(number);
    else if (first === undefined || forMs < first.forMs) this.refused.set(number, { forMs, dials });
    else return forMs - first.forMs >= refusedMs && dials > first.dials;
    return false;
  }

  private tell(number: number, forMs: number): void {
    const { hostTimeoutMs, peerTimeoutMs } = this.options;
    // A rail has led to it since, and is lost once more: that is told once more.
    if (forMs < Math.min(hostTimeoutMs, peerTimeoutMs)) {
      this.told.delete(number);
      return;
    }
    const isFinal = forMs >= peerTimeoutMs;
    const before = this.told.get(number);
    if (before === isFinal || before === true) return;
    this.told.set(number, isFinal);
    this.options.report(number, forMs, isFinal);
  }
}
