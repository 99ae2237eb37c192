// The public face of multirail: what a program imports. Classes that it may test a value against with `instanceof` are exported as values, and
// so are those with calls of their own (Request.waitAll(), Op.create()); what only the library makes, and nobody need tell apart, is a type.

export type { Params } from './btl/btl.ts';
export { ERROR_CODES, type ErrorCode, type ErrorDetails, MultirailError } from './errors.ts';
export type { RailLine, RankWaits, Wait } from './launch/oob/waits.ts';
export { type BufferPart, type MessageBuffer, Vector, vector } from './mpi/buffers.ts';
export type { Counts, RootBuffer } from './mpi/coll/calls.ts';
export type { TypedArray } from './mpi/coll/kernels.ts';
export { IN_PLACE, type InPlace } from './mpi/coll/memory.ts';
export { Communicator, type FreeOptions, type ReplaceOptions } from './mpi/communicator.ts';
export { ANY_SOURCE, ANY_TAG, type CallOptions, PROC_NULL, type SyncOptions, TAG_UB, UNDEFINED } from './mpi/constants.ts';
export type { Agreement } from './mpi/failure-calls.ts';
export type { StandbyPool, StandbyPoolEvents } from './mpi/ft/standby.ts';
export { CONGRUENT, type Comparison, Group, IDENT, SIMILAR, UNEQUAL } from './mpi/group.ts';
export { type InitOptions, init } from './mpi/init.ts';
export type { Message } from './mpi/message.ts';
export type { ReceivedMessage } from './mpi/message-stream.ts';
export { Op, type OpFunction, type OpOptions } from './mpi/op.ts';
export type { Injector } from './mpi/replica/inject.ts';
export type { Replica, ReplicaCounters } from './mpi/replica/replica.ts';
export { PersistentRequest, Request, type RequestState } from './mpi/request.ts';
export { RequestsError } from './mpi/requests-error.ts';
export type { ResultRequest } from './mpi/result-request.ts';
export type { Runtime } from './mpi/runtime.ts';
export { Status } from './mpi/status.ts';
export type {
  CollectiveCounters,
  EngineCounters,
  PeerEvent,
  PmlCounters,
  RailCounters,
  RailEvent,
  RailInfo,
  RailState,
  RuntimeCounters,
  RuntimeEvents,
} from './mpi/views.ts';
