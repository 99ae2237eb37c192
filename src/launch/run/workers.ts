// How many processes a job has, and which of them are at work, as which rank: at the start all but those that stand by, and later those
// that were called in, too.
import { MultirailError } from '../../errors.ts';
import { ParamTable, survivesFailures } from '../../params.ts';

/** The processes of a job, as its options and parameters say together. */
export interface Processes {
  /** Those that stand by are among them. */
  readonly size: number;
  /** So many of them, those with the highest numbers, stand by at the start. */
  readonly spares: number;
  /** The others go on when one dies. */
  readonly survivesFailures: boolean;
  /** The parameters that the ranks get, and all of them. */
  readonly mca: Readonly<Record<string, string>>;
  readonly params: ParamTable;
}

/** Unknown names and values out of range end here, before anything is started. */
export function processesOf({
  size: ranks,
  spares: more = 0,
  respawn = 0,
  replicas = 1,
  mca: given = {},
  env = process.env,
}: {
  size: number;
  spares?: number;
  respawn?: number;
  replicas?: number;
  mca?: Readonly<Record<string, string>>;
  env?: Readonly<Record<string, string | undefined>>;
}): Processes {
  const mca = {
    ...given,
    ...(more + respawn === 0 ? {} : { ft: 'on' }),
    ...(more === 0 ? {} : { ft_spares: String(more) }),
    ...(respawn === 0 ? {} : { ft_respawn: String(respawn) }),
    ...(replicas === 1 ? {} : { ft_replicas: String(replicas) }),
  };
  const params = new ParamTable(mca, env);
  if (replicas > 1 && survivesFailures(params))
    throw new MultirailError('ERR_ARG', '--replicas does not go together with --spares, --respawn and --mca ft on: give it alone');
  const size = ranks * replicas + more;
  return { size, spares: Math.min(params.int('ft_spares'), size - 1), survivesFailures: survivesFailures(params), mca, params };
}

export class Workers {
  /** So many stood by at the start. */
  readonly spares: number;
  /** Processes that stand by, or did: those of the start, and those that came later. */
  private readonly standbys = new Set<number>();
  /** Process numbers by rank of the working communicator. */
  private readonly byRank: number[];
  private readonly calledIn = new Set<number>();

  constructor(size: number, spares: number) {
    this.spares = spares;
    for (let number = size - spares; number < size; number++) this.standbys.add(number);
    this.byRank = Array.from({ length: size - spares }, (_, rank) => rank);
  }

  /** A process comes that stands by. */
  addStandby(number: number): void {
    this.standbys.add(number);
  }

  /** That process has this place now; undefined: it has none. */
  set(number: number, place: number | undefined): void {
    if (place === undefined) {
      this.calledIn.delete(number);
      return;
    }
    this.calledIn.add(number);
    this.byRank[place] = number;
  }

  /** The process that was at work last as that rank. */
  numberOf(rank: number): number | undefined {
    return this.byRank[rank];
  }

  /** Processes that are at work, or were, ascending. */
  get numbers(): number[] {
    return [...new Set([...this.byRank.filter((number) => number !== undefined), ...this.calledIn])].sort((a, b) => a - b);
  }

  /** What came of those that stood by, as the end of a sentence that begins with the number of the dead. `isIdle`: it lived, and nobody needed it. */
  summary(isIdle: (number: number) => boolean): string {
    const { standbys, calledIn } = this;
    if (standbys.size === 0) return 'ranks died; the others came to their end';
    const idle = [...standbys].filter(isIdle).length;
    const places = `${calledIn.size} of ${standbys.size} that stood by took ${calledIn.size === 1 ? 'the place of one' : 'places'} of them`;
    return `processes died; ${places}${idle === 0 ? '' : `, ${idle} ${idle === 1 ? 'was' : 'were'} not needed`}; the others came to their end`;
  }
}
