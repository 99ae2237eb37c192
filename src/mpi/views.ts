// What a program sees of its rails, counters and events: the shapes that rails(), counters() and the events of the runtime have.
import type { MultirailError } from '../errors.ts';

/**
 * The state of a rail, as this rank sees it:
 *
 * - `ON_DEMAND`: it was not made, since a rail in memory carries all; it is made when that one fails, or cannot be made.
 * - `DOWN`: nothing goes over it; it is tried again when its back-off is over, or when the peer dials.
 * - `CONNECTING`: an attempt to connect is under way.
 * - `PROBING`: it is connected, and a probe has not been answered yet.
 * - `UP`: it carries traffic.
 * - `SUSPECT`: nothing has come through for a while; it is probed, and passed over while another rail is UP.
 * - `TRIAL`: it was lost and is back; it is passed over while another rail is UP, until it has earned trust.
 */
export type RailState = 'ON_DEMAND' | 'DOWN' | 'CONNECTING' | 'PROBING' | 'UP' | 'SUSPECT' | 'TRIAL';

/** What one rail has done since the start of this rank. */
export interface RailCounters {
  /** Times it came up. */
  ups: number;
  /** Times it was lost. */
  downs: number;
  /** Times it came under suspicion. */
  suspicions: number;
  /** Attempts to connect it. */
  connectAttempts: number;
  /** Times it was left because what it held was late while a sibling moved. */
  stalls: number;
  /** Probes that were late while it was on trial. */
  trialFaults: number;
  /** Frames of which nobody knew, when it was lost, whether they had arrived. */
  framesInDoubt: number;
  /** Frames that the other side refused because their bytes were damaged. */
  framesRefused: number;
  /** Frames sent. */
  framesSent: number;
  /** Frames received. */
  framesReceived: number;
  /** Bytes sent, headers included. */
  bytesSent: number;
  /** Bytes received, headers included. */
  bytesReceived: number;
  /** Bytes of messages among those sent. */
  payloadBytesSent: number;
  /** Bytes of messages among those received. */
  payloadBytesReceived: number;
  /** Bytes of padding in the probes of its trials. */
  paddingBytes: number;
  /** Looks at which the kernel had sent something again although nothing queued before it: what the link lost. 0 where nobody can tell. */
  losses: number;
  /** Milliseconds since it first came up during which it was DOWN or being brought back. */
  downMs: number;
  /** Milliseconds since it first came up during which it was SUSPECT. */
  suspectMs: number;
  /** Milliseconds since it first came up during which it was in TRIAL. */
  trialMs: number;
}

/** One rail to one peer, as Runtime.rails() found it. */
export interface RailInfo {
  /** World rank of the other side. */
  peer: number;
  /** Number of the rail among those to this peer. */
  rail: number;
  /** Name of the rail, with the interfaces or ports that it joins. */
  key: string;
  /** Name of the transport: `self`, `sm`, `verbs`, `tcp` or `ws`. */
  transport: string;
  /** Its state. */
  state: RailState;
  /** Number of the connection that is live; 0 when none is. */
  epoch: number;
  /** Whether it carries traffic by itself, or only while no active rail does. */
  role: 'active' | 'standby';
  /** What it is taken to carry, in 10^6 bytes per second. */
  bandwidthMBps: number;
  /** What it is taken to need for a short message, in microseconds. */
  latencyUs: number;
  /** What it was measured to carry, in 10^6 bytes per second; 0 until it was. */
  measuredMBps: number;
  /** Bytes handed to it whose arrival is not known yet. */
  outstandingBytes: number;
  /** How many such bytes it takes at a time. */
  windowBytes: number;
  /** What it has done so far. */
  counters: RailCounters;
  /** Why it was last lost, or could not be connected; undefined while that has not happened. */
  lastReason: string | undefined;
}

/** Something happened to a rail of this rank: the event `rail` of the Runtime. */
export interface RailEvent {
  /**
   * What happened:
   *
   * - `added`: a rail of interfaces that came after the start carries for the first time.
   * - `restored`: a lost rail carries again.
   * - `lost`: it carries no more, and what was in doubt goes over the others.
   * - `suspect`: nothing has come through for a while.
   * - `trial`: it is back, and must earn trust before it carries.
   * - `degraded`, `last`, `unreachable`: after a loss, fewer rails than there could be are left to that peer, or one, or none.
   */
  type: 'added' | 'restored' | 'lost' | 'suspect' | 'trial' | 'degraded' | 'last' | 'unreachable';
  /** World rank of this process. */
  rank: number;
  /** World rank of the other side. */
  peer: number;
  /** Number of the rail among those to this peer. */
  rail: number;
  /** Name of the rail. */
  key: string;
  /** Number of the connection that the event is about. */
  epoch: number;
  /** Why, in words; empty where nothing went wrong. */
  reason: string;
  /** Rails to that peer that carry traffic now. */
  up: number;
  /** Rails to that peer that exist. */
  of: number;
  /** Milliseconds since the process began, as performance.now() counts them. */
  atMs: number;
}

/** A peer has failed and does not come back: the event `peer` of the Runtime. */
export interface PeerEvent {
  /** There is one kind. */
  type: 'failed';
  /** World rank of this process. */
  rank: number;
  /** World rank of the peer. */
  peer: number;
  /** What calls that need this peer end with: ERR_PROC_FAILED, ERR_PROC_UNREACHABLE or ERR_ABORT. */
  error: MultirailError;
  /**
   * Messages that were complete for the sender and that the peer was not known to have received when it died. Whoever receives says so by
   * the credit that its next packet carries, so of messages that nothing answered some may have been received all the same.
   */
  lostMessages: number;
}

/** Events of a Runtime, by name. Listeners run after the library's work, not in the midst of it. */
export interface RuntimeEvents {
  /** Something happened to a rail of this rank. */
  rail: [event: RailEvent];
  /** A peer has failed and does not come back. */
  peer: [event: PeerEvent];
}

/** What the collectives of this rank have done. */
export interface CollectiveCounters {
  /** Collectives that were begun. */
  collectives: number;
  /** Messages that they sent. */
  messages: number;
  /** Bytes that they sent. */
  bytes: number;
  /** How often this rank had to wait for others in them. */
  rounds: number;
  /** Those of `collectives` that were made in one step, in memory that the ranks share: short blocking ones to which all came at about the same time. */
  atOnce: number;
}

/** What the engine of this rank has done. */
export interface EngineCounters {
  /** Turns: looks at all rails, and the work that they found. */
  turns: number;
  /** Milliseconds during which this process could work; those in which it was stopped are left out. */
  aliveMs: number;
  /** Bytes of sent messages that are kept until their arrival is known. */
  retainedBytes: number;
}

/** Counters of messages, collectives and the engine of this rank, since its start. */
export interface RuntimeCounters {
  /** Messages between this rank and others, collectives included. */
  pml: PmlCounters;
  /** Collectives. */
  collectives: CollectiveCounters;
  /** The engine that moves the messages. */
  engine: EngineCounters;
}

/** Messages of this rank in numbers: what was sent, received, matched, and sent again after losses. */
export interface PmlCounters {
  /** Messages that took a sequence number. */
  messagesSent: number;
  /** How many of these were sent eagerly. */
  messagesEager: number;
  /** How many of these were sent by rendezvous. */
  messagesRndv: number;
  /** Receives that completed. */
  messagesReceived: number;
  /** Payload bytes of messages sent, each byte once. */
  bytesSent: number;
  /** Payload bytes received, each byte once. */
  bytesReceived: number;
  /** Messages that found a posted receive on arrival. */
  matchesPosted: number;
  /** Messages that had to wait for their receive. */
  matchesUnexpected: number;
  /** Envelopes that overtook a lower number on another rail and waited. */
  earlyArrivals: number;
  /** MATCH, RNDV and RGET dropped because their number was there before. */
  envelopeDuplicates: number;
  /** Fragments discarded because their bytes were counted or under way. */
  fragDuplicates: number;
  /** Fragments of an older epoch or a finished message, dropped. */
  fragStale: number;
  /** ACK, PUT, FIN and restart packets of an older epoch or a finished message, dropped. */
  controlStale: number;
  /** Envelopes for a freed context, dropped. */
  freedContextDropped: number;
  /** MATCH, RNDV and RGET sent again after their rail was lost. */
  envelopesResent: number;
  /** Payload bytes sent again, eager and fragments. */
  bytesResent: number;
  /** MATCH sent over another rail, too, because what their rail held was late. */
  envelopesHedged: number;
  /** Payload bytes of these. */
  bytesHedged: number;
  /** Rendezvous messages restarted (NOTIFY of a new epoch). */
  restarts: number;
  /** RESTARTACKs obeyed. */
  restartAcks: number;
  /** RESTARTNACKs obeyed: the message had been received in full. */
  restartNacks: number;
  /** RECVERRNOTIFYs sent for own gets in doubt. */
  recvErrNotifies: number;
  /** Frames of ours refused for a damaged payload and sent again. */
  refused: number;
  /** One-sided writes done. */
  puts: number;
  /** One-sided reads done. */
  gets: number;
  /** Receives that ended with ERR_TRUNCATE. */
  truncations: number;
  /** Receives cancelled. */
  cancels: number;
  /** Sends that a timeout or a signal ended, and whose message goes on. */
  givenUp: number;
  /** Messages that went by rendezvous only for want of byte credit or room in the retained store. */
  creditStalls: number;
  /** Eager messages that were complete for the user and that their peer was not known to have received when it died. */
  lostWithPeer: number;
}
