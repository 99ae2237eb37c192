// What the programs of the memory measurement tell each other. Imports nothing.

/** Argument of lab-memory-job. */
export interface MemoryJobSpec {
  peers: number;
  rails: number;
  hosts: number;
  mca: Record<string, string>;
}

/** Argument of lab-memory-peers: it holds the ranks from..to, both included. */
export interface MemoryPeersSpec extends MemoryJobSpec {
  from: number;
  to: number;
}

export interface MemorySample {
  rssBytes: number;
  /** Private pages of this process alone (smaps_rollup). */
  privateBytes: number;
  /** heapUsed + external. */
  jsBytes: number;
  arrayBufferBytes: number;
  /** All TCP memory of the machine's kernel (/proc/net/sockstat). */
  sockstatBytes: number;
  /** What the sockets of this namespace have in their buffers or set aside for them (ss -m), both ends of every connection. */
  socketBytes: number;
  railsUp: number;
  /** Processor time of this process while it settled, in percent. */
  cpuPercent: number;
}

export type MemoryStage = 'start' | 'connected' | 'used';
export type MemoryLine = { type: 'text'; text: string } | { type: 'sample'; stage: MemoryStage; sample: MemorySample };

/** Longest message of the exchange. */
export const EXCHANGE_BYTES = 1 << 20;
export const EXCHANGE_TAG = 1;
