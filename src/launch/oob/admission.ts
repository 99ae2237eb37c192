// Who may join a job, as its server judges: the first words of a connection, against the secret and what is known of that rank. Pure.
import type { Member } from './member.ts';
import { NONCE_BYTES, OOB_VERSION, type OobBodies, proofEquals, proofOfRank } from './messages.ts';

/** What a connection must fit. */
export interface AdmittedJob {
  readonly jobId: string;
  readonly size: number;
  readonly secret: Uint8Array;
}

/** Undefined when the hello is welcome, else the reason and a sentence. `member`: what is known of the rank that it names. */
export function refusalOf(
  hello: OobBodies['hello'],
  nonce: Uint8Array,
  { jobId, size, secret }: AdmittedJob,
  member: Pick<Member, 'exit' | 'info'> | undefined,
): [reason: string, text: string] | undefined {
  if (hello.version !== OOB_VERSION) {
    const text = `rank ${hello.rank} speaks version ${hello.version} of the out-of-band channel; expected version ${OOB_VERSION}, that of the launcher`;
    return ['VERSION', `${text}: run the same version of multirail on all hosts`];
  }
  if (hello.nonce.length !== NONCE_BYTES || !proofEquals(hello.proof, proofOfRank(secret, nonce, hello))) {
    return ['BAD_PROOF', "the other side does not know the job's secret"];
  }
  if (hello.jobId !== jobId) return ['WRONG_JOB', 'another job'];
  if (member === undefined || hello.size !== size) return ['UNKNOWN_RANK', `rank ${hello.rank} of ${hello.size} in a job of ${size}`];
  if (member.exit !== undefined) return ['RANK_ENDED', `rank ${hello.rank} has ended`];
  if (member.info !== undefined && member.info.incarnation !== hello.incarnation) {
    const isSame = member.info.pid === hello.pid && member.info.hostId === hello.hostId;
    const what = isSame
      ? 'init() is called once in a process'
      : 'a rank is one process; was one started twice, or was this one started by that rank?';
    return ['RANK_TAKEN', `rank ${hello.rank} has already joined as process ${member.info.pid}: ${what}`];
  }
  if (hello.lifeline && member.info === undefined) return ['UNKNOWN_RANK', `a lifeline of rank ${hello.rank}, which has not joined`];
  return undefined;
}
