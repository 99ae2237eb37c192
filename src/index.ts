// The public face of multirail.

export { ERROR_CODES, type ErrorCode, MultirailError } from './errors.ts';
export type { RailLine, RankWaits, Wait } from './launch/waits.ts';
export { type BufferPart, type MessageBuffer, Vector, vector } from './mpi/buffers.ts';
export { IN_PLACE } from './mpi/coll/memory.ts';
export type { Communicator } from './mpi/communicator.ts';
export { ANY_SOURCE, ANY_TAG, type CallOptions, PROC_NULL, TAG_UB, UNDEFINED } from './mpi/constants.ts';
export { CONGRUENT, type Comparison, Group, IDENT, SIMILAR, UNEQUAL } from './mpi/group.ts';
export { type InitOptions, init } from './mpi/init.ts';
export type { Message } from './mpi/message.ts';
export type { ReceivedMessage } from './mpi/message-stream.ts';
export { Op, type OpFunction, type OpOptions } from './mpi/op.ts';
export { type PersistentRequest, Request, type RequestState, RequestsError } from './mpi/request.ts';
export type { PeerEvent, RailEvent, RailInfo, Runtime, RuntimeCounters, RuntimeState } from './mpi/runtime.ts';
export type { Status } from './mpi/status.ts';
