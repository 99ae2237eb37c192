// What is published on node:diagnostics_channel. A channel that nobody listens to costs one comparison.
import { channel } from 'node:diagnostics_channel';

/** A send, a receive or a collective begins: an OperationTrace (tracing.ts). */
export const operationStartChannel = channel('multirail:operation:start');
/** It has ended: the same object, with `durationMs`, and `error` when it failed. */
export const operationEndChannel = channel('multirail:operation:end');
/** A send was started: { rank, comm, dest, tag, bytes }. */
export const sendChannel = channel('multirail:send');
/** A receive ended well: { rank, comm, source, tag, bytes }. */
export const recvChannel = channel('multirail:recv');
/** A rail was lost, came back: the `rail` event. */
export const railLostChannel = channel('multirail:rail:lost');
export const railRestoredChannel = channel('multirail:rail:restored');
/** A peer has failed and does not come back: the `peer` event. */
export const peerFailedChannel = channel('multirail:peer:failed');
