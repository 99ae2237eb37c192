// The constants of mpi.h that the binding needs, as the ABI chapter of MPI 5.0 states them, and the error classes with their sentences.

export const COMM_NULL = 0x100;
export const COMM_WORLD = 0x101;
export const COMM_SELF = 0x102;
export const GROUP_NULL = 0x108;
export const GROUP_EMPTY = 0x109;
export const MESSAGE_NULL = 0x128;
export const MESSAGE_NO_PROC = 0x129;
export const INFO_NULL = 0x130;
export const INFO_ENV = 0x131;
export const ERRHANDLER_NULL = 0x140;
export const ERRORS_ARE_FATAL = 0x141;
export const ERRORS_ABORT = 0x142;
export const ERRORS_RETURN = 0x143;
export const REQUEST_NULL = 0x180;
export const DATATYPE_NULL = 0x200;
export const OP_NULL = 0x20;

/** Addresses that stand for something else. */
export const BOTTOM = 0;
export const IN_PLACE = 1;
export const UNWEIGHTED = 10;
export const WEIGHTS_EMPTY = 11;

export const ANY_SOURCE = -1;
export const ANY_TAG = -2;
export const PROC_NULL = -3;
export const ROOT = -4;
export const UNDEFINED = -32766;

export const THREAD_SINGLE = 0;
export const THREAD_FUNNELED = 1024;
export const THREAD_SERIALIZED = 2048;

export const ORDER_C = 12;
export const ORDER_FORTRAN = 15;
export const DISTRIBUTE_NONE = 16;
export const DISTRIBUTE_BLOCK = 17;
export const DISTRIBUTE_CYCLIC = 18;
export const DISTRIBUTE_DFLT_DARG = 19;

export const COMBINER = {
  NAMED: 101,
  DUP: 102,
  CONTIGUOUS: 103,
  VECTOR: 104,
  HVECTOR: 105,
  INDEXED: 106,
  HINDEXED: 107,
  INDEXED_BLOCK: 108,
  HINDEXED_BLOCK: 109,
  STRUCT: 110,
  SUBARRAY: 111,
  DARRAY: 112,
  F90_REAL: 113,
  F90_COMPLEX: 114,
  F90_INTEGER: 115,
  RESIZED: 116,
  VALUE_INDEX: 117,
} as const;

export const IDENT = 201;
export const CONGRUENT = 202;
export const SIMILAR = 203;
export const UNEQUAL = 204;
export const CART = 211;
export const GRAPH = 212;
export const DIST_GRAPH = 213;
export const COMM_TYPE_SHARED = 221;
export const COMM_TYPE_HW_UNGUIDED = 222;
export const COMM_TYPE_HW_GUIDED = 223;
export const COMM_TYPE_RESOURCE_GUIDED = 224;

export const KEYVAL_INVALID = 0;
export const ATTRIBUTE = {
  TAG_UB: 501,
  IO: 502,
  HOST: 503,
  WTIME_IS_GLOBAL: 504,
  APPNUM: 505,
  LASTUSEDCODE: 506,
  UNIVERSE_SIZE: 507,
} as const;

export const MAX_OBJECT_NAME = 128;
export const MAX_PROCESSOR_NAME = 256;
export const MAX_ERROR_STRING = 512;
export const MAX_INFO_KEY = 256;
export const MAX_INFO_VAL = 1024;
export const BSEND_OVERHEAD = 512;

/** Error classes: value, and what MPI_Error_string says of it. */
export const CLASSES = {
  SUCCESS: [0, 'no error'],
  BUFFER: [1, 'invalid buffer'],
  COUNT: [2, 'invalid count'],
  TYPE: [3, 'invalid datatype'],
  TAG: [4, 'invalid tag'],
  COMM: [5, 'invalid communicator'],
  RANK: [6, 'invalid rank'],
  REQUEST: [7, 'invalid request'],
  ROOT: [8, 'invalid root'],
  GROUP: [9, 'invalid group'],
  OP: [10, 'invalid operation'],
  TOPOLOGY: [11, 'invalid topology'],
  DIMS: [12, 'invalid dimensions'],
  ARG: [13, 'invalid argument'],
  UNKNOWN: [14, 'unknown error'],
  TRUNCATE: [15, 'message truncated on receive'],
  OTHER: [16, 'known error that is in no other class'],
  INTERN: [17, 'internal error'],
  PENDING: [18, 'request is pending'],
  IN_STATUS: [19, 'error code is in the status'],
  ACCESS: [20, 'permission denied'],
  AMODE: [21, 'invalid access mode'],
  ASSERT: [22, 'invalid assertion'],
  BAD_FILE: [23, 'invalid file name'],
  BASE: [24, 'invalid base address'],
  CONVERSION: [25, 'conversion function failed'],
  DISP: [26, 'invalid displacement'],
  DUP_DATAREP: [27, 'data representation is defined already'],
  FILE_EXISTS: [28, 'file exists'],
  FILE_IN_USE: [29, 'file is in use'],
  FILE: [30, 'invalid file handle'],
  INFO_KEY: [31, 'info key is too long'],
  INFO_NOKEY: [32, 'there is no such info key'],
  INFO_VALUE: [33, 'info value is too long'],
  INFO: [34, 'invalid info object'],
  IO: [35, 'input or output failed'],
  KEYVAL: [36, 'invalid key of an attribute'],
  LOCKTYPE: [37, 'invalid kind of lock'],
  NAME: [38, 'invalid service name'],
  NO_MEM: [39, 'no memory'],
  NOT_SAME: [40, 'collective argument is not the same at all processes'],
  NO_SPACE: [41, 'no space'],
  NO_SUCH_FILE: [42, 'there is no such file'],
  PORT: [43, 'invalid port name'],
  QUOTA: [44, 'quota exceeded'],
  READ_ONLY: [45, 'file is read-only'],
  RMA_ATTACH: [46, 'memory cannot be attached'],
  RMA_CONFLICT: [47, 'conflicting accesses to a window'],
  RMA_RANGE: [48, 'memory is not part of the window'],
  RMA_SHARED: [49, 'memory cannot be shared'],
  RMA_SYNC: [50, 'wrong synchronisation of a window'],
  SERVICE: [51, 'invalid service'],
  SIZE: [52, 'invalid size'],
  SPAWN: [53, 'processes could not be started'],
  UNSUPPORTED_DATAREP: [54, 'data representation is not supported'],
  UNSUPPORTED_OPERATION: [55, 'operation is not supported'],
  WIN: [56, 'invalid window'],
  RMA_FLAVOR: [57, 'window has the wrong flavour'],
  PROC_ABORTED: [58, 'process was aborted'],
  VALUE_TOO_LARGE: [59, 'value is too large to be stored'],
  SESSION: [60, 'invalid session'],
  ERRHANDLER: [61, 'invalid error handler'],
  ABI: [62, 'ABI does not fit'],
  PROC_FAILED: [101, 'process has failed'],
  PROC_FAILED_PENDING: [102, 'a process has failed that might match; the request is pending'],
  REVOKED: [103, 'communicator was revoked'],
} as const;

export type ErrorClass = keyof typeof CLASSES;
export const LAST_CODE = 16383;
