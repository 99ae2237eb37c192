// The states of a rank's side of the out-of-band channel, and the moves between them.

/** States of the client. */
export const CLIENT = {
  IDLE: 0, // made, and not told to connect yet
  DIALLING: 1, // a connection attempt is under way, up to the launcher's proof
  CONNECTED: 2, // both sides are proven, messages flow
  WAITING: 3, // no connection; the next attempt follows after a pause
  LOST: 4, // the launcher is dead or was away for too long: everything pending has failed
  CLOSED: 5, // closed by this side, or refused at the first hello
} as const;
export type ClientState = (typeof CLIENT)[keyof typeof CLIENT];

export const CLIENT_STATE_NAMES = Object.keys(CLIENT);
/** Allowed moves. */
export const CLIENT_EDGES: Record<ClientState, readonly ClientState[]> = {
  [CLIENT.IDLE]: [CLIENT.DIALLING, CLIENT.CLOSED],
  [CLIENT.DIALLING]: [CLIENT.CONNECTED, CLIENT.WAITING, CLIENT.LOST, CLIENT.CLOSED],
  [CLIENT.CONNECTED]: [CLIENT.WAITING, CLIENT.LOST, CLIENT.CLOSED],
  [CLIENT.WAITING]: [CLIENT.DIALLING, CLIENT.LOST, CLIENT.CLOSED],
  [CLIENT.LOST]: [CLIENT.CLOSED],
  [CLIENT.CLOSED]: [],
};
