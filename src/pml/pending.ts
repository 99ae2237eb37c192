// What is pending: one record for each request that its user may be waiting for, with the state of the protocol in words. A reader of the
// PML: it changes nothing.
import { ANY, type Pml } from './pml.ts';
import { type RecvMessage, type RecvRequest, SendMessage, type SendRequest } from './records.ts';

export interface PendingRequest {
  /** The same object for as long as it is pending. */
  request: SendRequest | RecvRequest;
  kind: 'send' | 'recv';
  /** World rank or ANY. */
  peer: number;
  /** Tag or ANY. */
  tag: number;
  ctx: number;
  /** Of the message, or of the buffer while nothing has matched. */
  bytes: number;
  phase: string;
  /** Changes whenever something of it moves. */
  mark: string;
}

/** All sends and receives that are not done, in no particular order. */
export function pendingRequests(pml: Pml): PendingRequest[] {
  const list: PendingRequest[] = [];
  for (const peer of pml.core.peers.values()) {
    for (const message of peer.sends) if (message instanceof SendMessage) addSend(list, message);
    for (const message of peer.recvs) addReceive(list, message);
  }
  for (const request of pml.receiver.postedRequests()) list.push(posted(pml, request));
  return list;
}

function addSend(list: PendingRequest[], message: SendMessage): void {
  const { request, peer, tag, ctx, buffer } = message;
  if (request === undefined || request.done) return;
  const phase = sendPhase(message);
  list.push({ request, kind: 'send', peer: peer.rank, tag, ctx, bytes: buffer.bytes, phase, mark: phase });
}

function sendPhase(message: SendMessage): string {
  const { state, protocol } = message;
  switch (state) {
    case 'ENVELOPE':
      if (message.peer.bml.eager.length === 0) return `${protocol} not sent: no rail is up`;
      if (!message.firstSent) return `${protocol} not sent: no room on a rail, or messages before it`;
      if (!message.envelopeDelivered) return `${protocol} sent, and not known to be delivered`;
      return `${protocol} delivered: no receive there has matched it (no ACK)`;
    case 'STREAMING': {
      const movedBytes = message.takeBytes - message.toSend.bytes - message.inFlightBytes;
      return `matched: ${movedBytes} of ${message.takeBytes} bytes delivered, ${message.inFlightBytes} on rails`;
    }
    case 'DRAINING':
      return `restart: data in doubt, ${message.putsUnderWay} puts still run on living rails`;
    case 'NOTIFYING':
      return `restart: RNDVRESTARTNOTIFY of epoch ${message.epoch} ${message.notifyDelivered ? 'delivered, no answer yet' : 'not known to be delivered'}`;
    case 'OWING':
    case 'DONE':
      return 'complete';
  }
}

function addReceive(list: PendingRequest[], message: RecvMessage): void {
  const { request, peer, tag, ctx, messageBytes } = message;
  if (request === undefined || request.done) return;
  const phase = receivePhase(message);
  list.push({ request, kind: 'recv', peer: peer.rank, tag, ctx, bytes: messageBytes, phase, mark: phase });
}

function receivePhase(message: RecvMessage): string {
  const { state, received, takeBytes, answerDelivered } = message;
  const moved = `${received.bytes} of ${takeBytes} bytes received`;
  switch (state) {
    case 'RECEIVING':
      return `matched: ${moved}${answerDelivered ? '' : ', ACK not known to be delivered'}`;
    case 'READING':
      return `matched: ${moved}, ${message.getsUnderWay} gets under way`;
    case 'FENCING':
      return `restart: ${moved}, ${message.getsUnderWay} gets still run`;
    case 'OWING':
    case 'DONE':
      return 'complete';
  }
}

function posted(pml: Pml, request: RecvRequest): PendingRequest {
  const { ctx, source, tag, buffer } = request;
  const others = pml.receiver.unexpectedFrom(ctx, source);
  const from = source === ANY ? '' : ' from there';
  const phase = `posted: nothing has matched${others === 0 ? '' : `; ${others} unexpected ${others === 1 ? 'message' : 'messages'}${from} with other tags`}`;
  return { request, kind: 'recv', peer: source, tag, ctx, bytes: buffer.bytes, phase, mark: 'posted' };
}
