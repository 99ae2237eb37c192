// How the ranks of a job of PMIx meet: PMIx says how many there are and carries rank 0's record of where the out-of-band channel is, as PMI-1
// does; all else goes over that channel, so that the protocol between ranks is one and the same under every starter. What the starter
// says of a process that is gone is told to the channel's server by rank 0, and taken at its word by each rank: it comes within
// milliseconds, and also where the host of the server is lost.
import { randomBytes } from 'node:crypto';
import { MultirailError } from '../../errors.ts';
import { openPmix } from '../pmix/binding.ts';
import { PMIX_KEYS, PmixClient } from '../pmix/client.ts';
import { checkRank, type KnownPlace, type Place, RANKS_LIMIT } from '../starters/starter.ts';
import { type MeetOptions, type Met, meet } from './rendezvous.ts';

export interface MetByPmix extends Met {
  place: KnownPlace;
}

/** Joins the job by PMIx, and meets the other ranks. Throws as meet() does, and ERR_INIT, naming the call, when PMIx fails. */
export async function meetByPmix(options: Omit<MeetOptions, 'place' | 'space'> & { place: Place }): Promise<MetByPmix> {
  const { place, params, log } = options;
  const { rank } = place;
  if (place.meeting.by !== 'pmix') throw new MultirailError('ERR_INTERNAL', `a job that meets by ${place.meeting.by}, and not by PMIx`);
  const found = openPmix(params);
  if ('missing' in found) throw new MultirailError('ERR_INIT', `PMIx cannot be used: ${found.missing}`, { rank });
  const deadlineMs = performance.now() + params.int('oob_join_timeout_ms');
  const client = new PmixClient({ binding: found.binding, deadlineMs, ...(log === undefined ? {} : { log }) });
  await client.init();
  if (client.rank !== rank) {
    throw new MultirailError(
      'ERR_INIT',
      `PMIX_RANK=${rank}, and PMIx says that this process is rank ${client.rank}: start it without a wrapper`,
      {
        rank,
      },
    );
  }
  const [size, localSize, localRank] = await Promise.all([
    client.numberOf(PMIX_KEYS.jobSize),
    client.numberOf(PMIX_KEYS.localSize),
    client.numberOf(PMIX_KEYS.localRank, rank),
  ]);
  if (size === undefined || size > RANKS_LIMIT) {
    throw new MultirailError('ERR_INIT', `PMIx does not say how many ranks the job has (${PMIX_KEYS.jobSize})`, { rank });
  }
  checkRank(rank, size, 'PMIX_RANK', PMIX_KEYS.jobSize);
  const known: KnownPlace = { ...place, size, localSize, localRank };
  const abort = (code: number, reason: string) => client.abort(code, reason);
  if (size === 1) {
    const jobId = randomBytes(8).toString('hex');
    return { oob: undefined, secret: undefined, jobId, leave: () => client.finalize(), abort, place: known };
  }
  const space = {
    put: (key: string, text: string) => client.put(key, text),
    barrier: () => client.fence(),
    get: (key: string) => client.get(key, 0),
  };
  const met = await meet({ ...options, place: { ...known, meeting: place.meeting.byHand ?? place.meeting }, space });
  client.onGone((other) => {
    met.tellGone?.(other);
    met.oob?.processGone(other);
  });
  const leave = async () => {
    await met.leave?.();
    await client.finalize();
  };
  return { ...met, leave, abort, place: known };
}
