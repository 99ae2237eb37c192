// Who may join a job, as its server judges: the first words of a connection, against the secret and what is known of the processes of the
// job. Pure.
import { PROCESSES_MAX } from '../../ulfm/limits.ts';
import type { Member } from './member.ts';
import { NONCE_BYTES, OOB_VERSION, type OobBodies, proofEquals, proofOfRank } from './messages.ts';

/** What a connection must fit. */
export interface AdmittedJob {
  readonly jobId: string;
  readonly size: number;
  readonly secret: Uint8Array;
  /** Processes may join after the start. */
  readonly takesJoins: boolean;
}

type Known = Pick<Member, 'rank' | 'index' | 'exit' | 'info'>;
type Refusal = [reason: string, text: string];

/** Whose connection a hello is, or why it is refused. */
export type Verdict =
  | { readonly refusal: Refusal }
  /** That of a process that is in the job, or for which there is a place. */
  | { readonly rank: number }
  /** A further process; `replaces`: the one whose index it has is over, if it is not already. */
  | { readonly index: number | undefined; readonly replaces: number | undefined };

/** Judges a hello. `members`: all processes that have a number, by it. */
export function judgeHello(hello: OobBodies['hello'], nonce: Uint8Array, job: AdmittedJob, members: readonly Known[]): Verdict {
  const refusal = refusalOfStranger(hello, nonce, job);
  if (refusal !== undefined) return { refusal };
  if (hello.join !== '' && !hello.lifeline) return judgeJoin(hello, job, members);
  const wrong = refusalOfRank(hello, job.size, members[hello.rank]);
  return wrong === undefined ? { rank: hello.rank } : { refusal: wrong };
}

function refusalOfStranger(hello: OobBodies['hello'], nonce: Uint8Array, { jobId, secret }: AdmittedJob): Refusal | undefined {
  if (hello.version !== OOB_VERSION) {
    const text = `rank ${hello.rank} speaks version ${hello.version} of the out-of-band channel; expected version ${OOB_VERSION}, that of the launcher`;
    return ['VERSION', `${text}: run the same version of multirail on all hosts`];
  }
  if (hello.nonce.length !== NONCE_BYTES || !proofEquals(hello.proof, proofOfRank(secret, nonce, hello))) {
    return ['BAD_PROOF', "the other side does not know the job's secret"];
  }
  if (hello.jobId !== jobId) return ['WRONG_JOB', 'another job'];
  return undefined;
}

function refusalOfRank(hello: OobBodies['hello'], size: number, member: Known | undefined): Refusal | undefined {
  const isComing = member === undefined || (member.rank >= size && member.info === undefined);
  if (isComing || hello.size !== size) return ['UNKNOWN_RANK', `rank ${hello.rank} of ${hello.size} in a job of ${size}`];
  if (member.exit !== undefined) return ['RANK_ENDED', `rank ${hello.rank} has ended`];
  if (member.info !== undefined && !isSame(member, hello)) {
    const isTwice = member.info.pid === hello.pid && member.info.hostId === hello.hostId;
    const what = isTwice
      ? 'init() is called once in a process'
      : 'a rank is one process; was one started twice, or was this one started by that rank?';
    return ['RANK_TAKEN', `rank ${hello.rank} has already joined as process ${member.info.pid}: ${what}`];
  }
  if (hello.lifeline && member.info === undefined) return ['UNKNOWN_RANK', `a lifeline of rank ${hello.rank}, which has not joined`];
  return undefined;
}

function isSame({ info }: Known, { incarnation }: OobBodies['hello']): boolean {
  return info?.incarnation === incarnation;
}

function judgeJoin(hello: OobBodies['hello'], { size, takesJoins }: AdmittedJob, members: readonly Known[]): Verdict {
  const { rank, join, incarnation } = hello;
  // It lost its connection before it heard its number.
  const before = members.find(({ info }) => info?.incarnation === incarnation && info.pid === hello.pid && info.hostId === hello.hostId);
  if (before !== undefined) return before.exit === undefined ? { rank: before.rank } : { refusal: ended(before.rank) };
  let replaces: number | undefined;
  if (join === 'standby' && rank > 0) {
    const kept = members[rank];
    if (kept === undefined || rank < size) return { refusal: ['UNKNOWN_RANK', `number ${rank} was kept for no process that joins later`] };
    if (kept.exit !== undefined) return { refusal: ended(rank) };
    if (kept.info === undefined) return { rank };
    return { refusal: ['RANK_TAKEN', `number ${rank} is that of process ${kept.info.pid}: a number is given to one process`] };
  }
  if (join === 'index') {
    if (rank >= size || hello.size !== size) return { refusal: ['UNKNOWN_RANK', `rank ${rank} of ${hello.size} in a job of ${size}`] };
    const last = members.findLast(({ index }) => index === rank) as Known;
    if (last.info === undefined) return last.exit === undefined ? { rank } : { refusal: ended(rank) };
    if (incarnation <= last.info.incarnation) {
      const text = `incarnation ${incarnation} of rank ${rank}, where incarnation ${last.info.incarnation} has joined: an older process does not come back`;
      return { refusal: ['OLD_INCARNATION', text] };
    }
    replaces = last.rank;
  }
  if (!takesJoins) {
    const text =
      'this job takes no processes after its start: start it with --mca ft on, and with nothing that lets it end when a rank dies';
    return { refusal: ['NO_JOINS', text] };
  }
  if (members.every(({ exit, info }) => exit !== undefined || info === undefined) && members.some(({ exit }) => exit !== undefined))
    return { refusal: ['JOB_OVER', 'every process of this job has ended'] };
  if (members.length >= PROCESSES_MAX) {
    const text = `this job has given ${PROCESSES_MAX} numbers to processes, which is the most, and none is used again: start it again`;
    return { refusal: ['JOB_FULL', text] };
  }
  return { index: join === 'index' ? rank : undefined, replaces };
}

const ended = (rank: number): Refusal => ['RANK_ENDED', `rank ${rank} has ended`];
