// Peers that no rail leads to, where the parameter ft is on: whether they are given up, waited for, or whether it is this process that goes. With
// ft_partition = arbiter the server of the job is asked, as long as it is there; the rules are those of src/util/partition.ts.
import type { ParamTable } from '../../params.ts';
import { goesOn } from '../../util/partition.ts';

/** What the parameter ft_partition may be. */
export type PartitionPolicy = 'arbiter' | 'majority' | 'none';

/** What becomes of a peer that is out of reach: its requests wait, or it is given up, or this process is. */
export type PartitionVerdict = 'wait' | 'fail' | 'leave';

export interface PartitionOptions {
  readonly policy: PartitionPolicy;
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
}

/** A server that does not answer within so many time-outs of a peer is none. */
const ANSWER_TIMEOUTS = 2;

export class PartitionWatch {
  private readonly options: PartitionOptions;
  private readonly view: PartitionView;
  /** Peers of which the server has been told, and whether for the last time. */
  private readonly told = new Map<number, boolean>();

  constructor(options: PartitionOptions, view: PartitionView) {
    this.options = options;
    this.view = view;
  }

  /** Judges a peer to which nothing has led for so long, by the time in which this process was looking. Asked again and again. */
  judge(number: number, forMs: number): PartitionVerdict {
    const { options, view } = this;
    const { policy, peerTimeoutMs } = options;
    if (policy === 'arbiter' && options.hasServer() && forMs < peerTimeoutMs * ANSWER_TIMEOUTS) {
      this.tell(number, forMs);
      return 'wait';
    }
    if (forMs < peerTimeoutMs) return 'wait';
    return policy === 'none' || goesOn(view.base(), (one) => view.isReachable(one)) ? 'fail' : 'leave';
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
