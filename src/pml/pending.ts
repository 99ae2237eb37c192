// What is pending: one record for each request that its user may be waiting for, with the state of the protocol in words. A reader: it
// changes nothing.
import type { PmlCore } from './core.ts';
import type { Inbox } from './inbox.ts';
import { ANY } from './match.ts';
import { type PmlPeer, RecvMessage, type RecvRequest, SendMessage, type SendRequest } from './records.ts';

/** A request that is not done, and the message that it has, if it is a send or has matched. */
export interface OpenRequest {
  /** The same object for as long as it is pending. */
  readonly request: SendRequest | RecvRequest;
  readonly message: SendMessage | RecvMessage | undefined;
}

export interface PendingRequest {
  kind: 'send' | 'recv';
  /** World rank or ANY. */
  peer: number;
  /** Tag or ANY. */
  tag: number;
  ctx: number;
  /** The length of the message, or of the buffer while nothing has matched. */
  bytes: number;
  phase: string;
}

/** All sends and receives that are not done and that somebody waits for, in no particular order. Costs the same for each, whatever else is there. */
export function openRequests(core: PmlCore, inbox: Inbox): OpenRequest[] {
  const list: OpenRequest[] = [];
  const add = (message: SendMessage | RecvMessage): void => {
    const { request } = message;
    if (request !== undefined && !request.done && !request.isInBackground) list.push({ request, message });
  };
  for (const peer of core.peers.values()) {
    for (const message of peer.sends) if (message instanceof SendMessage) add(message);
    for (const message of peer.recvs) add(message);
  }
  for (const request of inbox.postedRequests()) if (!request.isInBackground) list.push({ request, message: undefined });
  return list;
}

/** Changes whenever something of it moves. */
export function markOf({ message }: OpenRequest): string {
  if (message === undefined) return 'posted';
  return message instanceof SendMessage ? sendPhase(message) : receivePhase(message);
}

/** What these requests wait for, in their order. Looks through the messages that wait unexpected, once for all requests together. */
export function describeRequests(inbox: Inbox, requests: readonly OpenRequest[]): PendingRequest[] {
  const unexpected = new Map<number, Map<number, number>>();
  const othersOf = ({ ctx, source }: RecvRequest): number => {
    let bySource = unexpected.get(ctx);
    if (bySource === undefined) {
      bySource = inbox.unexpectedBySource(ctx);
      unexpected.set(ctx, bySource);
    }
    return bySource.get(source) ?? 0;
  };
  return requests.map((open) => {
    const { message } = open;
    if (message instanceof SendMessage) {
      const { peer, tag, ctx, bytes } = message;
      return { kind: 'send', peer: peer.rank, tag, ctx, bytes, phase: markOf(open) };
    }
    if (message instanceof RecvMessage) {
      const { peer, tag, ctx, messageBytes } = message;
      return { kind: 'recv', peer: peer.rank, tag, ctx, bytes: messageBytes, phase: markOf(open) };
    }
    const request = open.request as RecvRequest;
    const { ctx, source, tag, buffer } = request;
    return { kind: 'recv', peer: source, tag, ctx, bytes: buffer.bytes, phase: postedPhase(source, othersOf(request)) };
  });
}

function postedPhase(source: number, others: number): string {
  if (others === 0) return 'posted: nothing has matched';
  const from = source === ANY ? '' : ' from there';
  return `posted: nothing has matched; ${others} unexpected ${others === 1 ? 'message' : 'messages'}${from} with other tags`;
}

function sendPhase(message: SendMessage): string {
  const { givenUp, givingBack } = message;
  const phase = statePhase(message);
  return givenUp === undefined ? phase : `${phase}; ended by ${givenUp.code}, but ${givingBack}`;
}

function statePhase(message: SendMessage): string {
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

/** What is not delivered to that peer, one line each. */
export function undeliveredTo({ sends, recvs }: PmlPeer): string[] {
  return [
    ...[...sends].map((message) => `send ${message.traceId}: ${message.state}`),
    ...[...recvs].map((message) => `receive ${message.traceId}: ${message.state}`),
  ];
}
