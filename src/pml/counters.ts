// Counters of the PML: id and one sentence each. They are documentation, an oracle for tests, and what users see.
import { WIDE_ZERO } from '../util/wide-zero.ts';

export const PML_COUNTERS = {
  messagesSent: 'Messages that took a sequence number.',
  messagesEager: 'How many of these were sent eagerly.',
  messagesRndv: 'How many of these were sent by rendezvous.',
  messagesReceived: 'Receives that completed.',
  bytesSent: 'Payload bytes of messages sent, each byte once.',
  bytesReceived: 'Payload bytes received, each byte once.',
  matchesPosted: 'Messages that found a posted receive on arrival.',
  matchesUnexpected: 'Messages that had to wait for their receive.',
  earlyArrivals: 'Envelopes that overtook a lower number on another rail and waited.',
  envelopeDuplicates: 'MATCH, RNDV and RGET dropped because their number was there before.',
  fragDuplicates: 'Fragments discarded because their bytes were counted or under way.',
  fragStale: 'Fragments of an older epoch or a finished message, dropped.',
  controlStale: 'ACK, PUT, FIN and restart packets of an older epoch or a finished message, dropped.',
  freedContextDropped: 'Envelopes for a freed context, dropped.',
  envelopesResent: 'MATCH, RNDV and RGET sent again after their rail was lost.',
  bytesResent: 'Payload bytes sent again, eager and fragments.',
  envelopesHedged: 'MATCH sent over another rail, too, because what their rail held was late.',
  bytesHedged: 'Payload bytes of these.',
  restarts: 'Rendezvous messages restarted (NOTIFY of a new epoch).',
  restartAcks: 'RESTARTACKs obeyed.',
  restartNacks: 'RESTARTNACKs obeyed: the message had been received in full.',
  recvErrNotifies: 'RECVERRNOTIFYs sent for own gets in doubt.',
  refused: 'Frames of ours refused for a damaged payload and sent again.',
  puts: 'One-sided writes done.',
  gets: 'One-sided reads done.',
  truncations: 'Receives that ended with ERR_TRUNCATE.',
  cancels: 'Receives cancelled.',
  givenUp: 'Sends that a timeout or a signal ended, and whose message goes on.',
  creditStalls: 'Messages that went by rendezvous only for want of byte credit or room in the retained store.',
  lostWithPeer: 'Eager messages that were complete for the user and that their peer was not known to have received when it died.',
} as const;

export type PmlCounterName = keyof typeof PML_COUNTERS;
export type PmlCounters = Record<PmlCounterName, number>;

export function newPmlCounters(): PmlCounters {
  return Object.fromEntries(Object.keys(PML_COUNTERS).map((name) => [name, name.startsWith('bytes') ? WIDE_ZERO : 0])) as PmlCounters;
}
