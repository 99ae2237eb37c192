// Numbers of <infiniband/verbs.h> by name. Imports nothing.

export const OPCODE = { WRITE: 0, WRITE_WITH_IMM: 1, SEND: 2, SEND_WITH_IMM: 3, READ: 4 };
export const SEND_FLAG = { FENCE: 1, SIGNALED: 2, SOLICITED: 4, INLINE: 8 };
export const ACCESS = { LOCAL_WRITE: 1, REMOTE_WRITE: 2, REMOTE_READ: 4, REMOTE_ATOMIC: 8 };
export const COMPLETION = { SEND: 0, WRITE: 1, READ: 2, RECV: 128, RECV_WRITE_WITH_IMM: 129 };
export const STATUS = {
  SUCCESS: 0,
  LOC_LEN_ERR: 1,
  LOC_QP_OP_ERR: 2,
  LOC_EEC_OP_ERR: 3,
  LOC_PROT_ERR: 4,
  WR_FLUSH_ERR: 5,
  MW_BIND_ERR: 6,
  BAD_RESP_ERR: 7,
  LOC_ACCESS_ERR: 8,
  REM_INV_REQ_ERR: 9,
  REM_ACCESS_ERR: 10,
  REM_OP_ERR: 11,
  RETRY_EXC_ERR: 12,
  RNR_RETRY_EXC_ERR: 13,
  LOC_RDD_VIOL_ERR: 14,
  REM_INV_RD_REQ_ERR: 15,
  REM_ABORT_ERR: 16,
  INV_EECN_ERR: 17,
  INV_EEC_STATE_ERR: 18,
  FATAL_ERR: 19,
  RESP_TIMEOUT_ERR: 20,
  GENERAL_ERR: 21,
};
export const QP_STATE = { RESET: 0, INIT: 1, RTR: 2, RTS: 3, SQD: 4, SQE: 5, ERR: 6 };
export const PORT_STATE = { NOP: 0, DOWN: 1, INIT: 2, ARMED: 3, ACTIVE: 4, ACTIVE_DEFER: 5 };
export const LINK_LAYER = { UNSPECIFIED: 0, INFINIBAND: 1, ETHERNET: 2 };
export const EVENT = {
  CQ_ERR: 0,
  QP_FATAL: 1,
  QP_REQ_ERR: 2,
  QP_ACCESS_ERR: 3,
  COMM_EST: 4,
  SQ_DRAINED: 5,
  PATH_MIG: 6,
  PATH_MIG_ERR: 7,
  DEVICE_FATAL: 8,
  PORT_ACTIVE: 9,
  PORT_ERR: 10,
  LID_CHANGE: 11,
  PKEY_CHANGE: 12,
  SM_CHANGE: 13,
  SRQ_ERR: 14,
  SRQ_LIMIT_REACHED: 15,
  QP_LAST_WQE_REACHED: 16,
  CLIENT_REREGISTER: 17,
  GID_CHANGE: 18,
};

/** The name of a number in one of the tables above; the number itself when it has none. */
export function nameOf(table, value) {
  for (const [name, known] of Object.entries(table)) if (known === value) return name;
  return String(value);
}

export const REQUEST_WORDS = 32;
export const COMPLETION_WORDS = 8;
export const PIECES_MAX = 4;
