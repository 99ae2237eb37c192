// The public face of multirail.
// Classes are exported as values, also those that only the library makes: `instanceof` is how a program tells a Request from a promise or
// one Status from many, and the bundler of the declarations would write `export type { Class }` as if the value were there.

export { ERROR_CODES, type ErrorCode, MultirailError } from './errors.ts';
export type { RailLine, RankWaits, Wait } from './launch/oob/waits.ts';
export { type BufferPart, type MessageBuffer, Vector, vector } from './mpi/buffers.ts';
export { IN_PLACE } from './mpi/coll/memory.ts';
export { Communicator } from './mpi/communicator.ts';
export { ANY_SOURCE, ANY_TAG, type CallOptions, PROC_NULL, TAG_UB, UNDEFINED } from './mpi/constants.ts';
export { CONGRUENT, type Comparison, Group, IDENT, SIMILAR, UNEQUAL } from './mpi/group.ts';
export type { RailInfo, RuntimeCounters } from './mpi/info.ts';
export { type InitOptions, init } from './mpi/init.ts';
export { Message } from './mpi/message.ts';
export type { ReceivedMessage } from './mpi/message-stream.ts';
export { Op, type OpFunction, type OpOptions } from './mpi/op.ts';
export { PersistentRequest, Request, type RequestState, RequestsError } from './mpi/request.ts';
export { type PeerEvent, type RailEvent, Runtime, type RuntimeState } from './mpi/runtime.ts';
export { Status } from './mpi/status.ts';
