// Matching for one context: the posted queue and the unexpected queue of MPI, with wildcards.
//
// Both queues are kept by pattern, so that a match is found by looking at heads of lists, never by a search:
//
//   a posted receive is in ONE list, that of its own pattern       (s,t) (s,*) (*,t) (*,*)
//   an unexpected message is in that of its own, and from the first use of a wildcard on in FOUR, all patterns that match it, each
//   in arrival order
//
// An arrival (s,t) looks at the four heads that could take it and picks the oldest receive; kinds of wildcard that nobody has posted
// are not looked for. A receive with pattern p looks at the head of list p. Both are O(1); the price is four list insertions per
// unexpected message where wildcards are used, which collectives never do. A posted receive carries its own links, since nearly every
// message meets one.
import type { Envelope, PostedQueue, RecvRequest } from './records.ts';

/** Wildcards, in the source and in the tag of a receive. */
export const ANY = -1;

class Node<T> {
  readonly item: T;
  list: List<T> | undefined = undefined;
  prev: Node<T> | undefined = undefined;
  next: Node<T> | undefined = undefined;
  /** The links of the same item in another list. */
  readonly sibling: Node<T> | undefined;
  constructor(item: T, sibling: Node<T> | undefined) {
    this.item = item;
    this.sibling = sibling;
  }
}

class List<T> {
  head: Node<T> | undefined = undefined;
  tail: Node<T> | undefined = undefined;
  source = ANY;
  tag = ANY;

  append(node: Node<T>): void {
    node.list = this;
    node.prev = this.tail;
    node.next = undefined;
    if (this.tail === undefined) this.head = node;
    else this.tail.next = node;
    this.tail = node;
  }

  static unlink<T>(node: Node<T>): void {
    const list = node.list;
    if (list === undefined) return;
    if (node.prev === undefined) list.head = node.next;
    else node.prev.next = node.next;
    if (node.next === undefined) list.tail = node.prev;
    else node.next.prev = node.prev;
    node.list = undefined;
    node.prev = undefined;
    node.next = undefined;
  }
}

/** Empty lists that stay in their place: programs that use a few tags find them there again. */
const EMPTY_KEPT = 128;
/** Empty lists without a place that are kept for another one. */
const SPARE_MAX = 16;

/** Lists by (source, tag), either of which may be ANY. Collectives use each tag once: beyond a few, empty lists are taken out. */
class PatternLists<L extends { head: unknown; source: number; tag: number }> {
  private readonly bySource = new Map<number, Map<number, L>>();
  private readonly make: () => L;
  private listCount = 0;
  private readonly spare: L[] = [];
  // The pattern asked for last: programs use one for many messages.
  private lastSource = Number.NaN;
  private lastTag = Number.NaN;
  private lastList: L | undefined = undefined;

  constructor(make: () => L) {
    this.make = make;
  }

  find(source: number, tag: number): L | undefined {
    if (source === this.lastSource && tag === this.lastTag) return this.lastList;
    const list = this.bySource.get(source)?.get(tag);
    if (list !== undefined) this.remember(source, tag, list);
    return list;
  }

  private remember(source: number, tag: number, list: L): void {
    this.lastSource = source;
    this.lastTag = tag;
    this.lastList = list;
  }

  at(source: number, tag: number): L {
    if (source === this.lastSource && tag === this.lastTag) return this.lastList as L;
    let byTag = this.bySource.get(source);
    if (byTag === undefined) {
      byTag = new Map();
      this.bySource.set(source, byTag);
    }
    let list = byTag.get(tag);
    if (list === undefined) {
      list = this.spare.pop() ?? this.make();
      list.source = source;
      list.tag = tag;
      byTag.set(tag, list);
      this.listCount++;
    }
    this.remember(source, tag, list);
    return list;
  }

  /** To be told when the last one has left a list. */
  emptied(list: L): void {
    if (this.listCount <= EMPTY_KEPT) return;
    this.bySource.get(list.source)?.delete(list.tag);
    this.listCount--;
    if (this.spare.length < SPARE_MAX) this.spare.push(list);
    if (list === this.lastList) this.lastSource = Number.NaN;
  }

  *lists(): IterableIterator<L> {
    for (const byTag of this.bySource.values()) yield* byTag.values();
  }
}

/** The matching state of one context id. Sources are world ranks. */
export class MatchContext {
  private readonly posted = new PatternLists<PostedQueue>(() => ({ head: undefined, tail: undefined, source: ANY, tag: ANY }));
  private readonly unexpected = new PatternLists<List<Envelope>>(() => new List());
  /** Posted receives that take any tag of one source, one tag of any source, anything. */
  private anyTag = 0;
  private anySource = 0;
  private anything = 0;
  /** In the order of their arrival: the last of each one's nodes. */
  private readonly unexpectedNodes = new Map<Envelope, Node<Envelope>>();
  /** A wildcard was looked for: unexpected messages are in the lists of those, too. */
  private usesWildcards = false;
  private postedSerial = 0;
  postedCount = 0;
  get unexpectedCount(): number {
    return this.unexpectedNodes.size;
  }

  /** The oldest unexpected message that the pattern matches; it stays queued. */
  probe(source: number, tag: number): Envelope | undefined {
    if (this.unexpectedNodes.size === 0) return undefined;
    if (!this.usesWildcards && (source === ANY || tag === ANY)) this.beginWildcards();
    return this.unexpected.find(source, tag)?.head?.item;
  }

  /** Takes a message out of the unexpected queue (a matched probe, or a receive that found it). */
  takeUnexpected(envelope: Envelope): void {
    const last = this.unexpectedNodes.get(envelope);
    if (last === undefined) return;
    this.unexpectedNodes.delete(envelope);
    for (let node: Node<Envelope> | undefined = last; node !== undefined; node = node.sibling) {
      const { list } = node;
      List.unlink(node);
      if (list !== undefined && list.head === undefined) this.unexpected.emptied(list);
    }
  }

  /** A receive is posted: returns the unexpected message it matches, else queues the receive. */
  post(request: RecvRequest): Envelope | undefined {
    const envelope = this.probe(request.source, request.tag);
    if (envelope !== undefined) {
      this.takeUnexpected(envelope);
      return envelope;
    }
    this.queuePosted(request);
    return undefined;
  }

  private queuePosted(request: RecvRequest): void {
    request.postedSerial = ++this.postedSerial;
    const queue = this.posted.at(request.source, request.tag);
    request.queue = queue;
    request.queuePrev = queue.tail;
    if (queue.tail === undefined) queue.head = request;
    else queue.tail.queueNext = request;
    queue.tail = request;
    this.postedCount++;
    this.countWildcards(request, 1);
  }

  /** A message arrives, in sequence: returns the receive it matches, else queues the message. */
  arrive(envelope: Envelope): RecvRequest | undefined {
    const best = this.matchPosted(envelope.source, envelope.tag);
    if (best === undefined) this.enqueue(envelope);
    return best;
  }

  /** As the last of those that wait. */
  enqueue(envelope: Envelope): void {
    const node = this.queue(envelope, envelope.source, envelope.tag, undefined);
    this.unexpectedNodes.set(envelope, this.usesWildcards ? this.queueForWildcards(envelope, node) : node);
  }

  private queue(envelope: Envelope, source: number, tag: number, sibling: Node<Envelope> | undefined): Node<Envelope> {
    const node = new Node(envelope, sibling);
    this.unexpected.at(source, tag).append(node);
    return node;
  }

  private queueForWildcards(envelope: Envelope, own: Node<Envelope>): Node<Envelope> {
    const { source, tag } = envelope;
    return this.queue(envelope, ANY, ANY, this.queue(envelope, ANY, tag, this.queue(envelope, source, ANY, own)));
  }

  private beginWildcards(): void {
    this.usesWildcards = true;
    for (const [envelope, own] of this.unexpectedNodes) this.unexpectedNodes.set(envelope, this.queueForWildcards(envelope, own));
  }

  /** The receive that a message of this source and tag matches; it is no longer posted then. */
  matchPosted(source: number, tag: number): RecvRequest | undefined {
    let best = this.posted.find(source, tag)?.head;
    if (this.anyTag > 0) best = this.first(best, this.posted.find(source, ANY)?.head);
    if (this.anySource > 0) best = this.first(best, this.posted.find(ANY, tag)?.head);
    if (this.anything > 0) best = this.first(best, this.posted.find(ANY, ANY)?.head);
    if (best !== undefined) this.unpost(best);
    return best;
  }

  /** Takes a posted receive back; false when it is not posted (any more). */
  unpost(request: RecvRequest): boolean {
    const { queue, queuePrev, queueNext } = request;
    if (queue === undefined) return false;
    if (queuePrev === undefined) queue.head = queueNext;
    else queuePrev.queueNext = queueNext;
    if (queueNext === undefined) queue.tail = queuePrev;
    else queueNext.queuePrev = queuePrev;
    request.queue = undefined;
    request.queuePrev = undefined;
    request.queueNext = undefined;
    if (queue.head === undefined) this.posted.emptied(queue);
    this.postedCount--;
    this.countWildcards(request, -1);
    return true;
  }

  /** Messages and receives of the one source are those of the other from now on, each in its place. */
  rename(source: number, successor: number): void {
    const posted = this.postedRequests().sort((a, b) => a.postedSerial - b.postedSerial);
    const waiting = this.unexpectedEnvelopes();
    for (const request of posted) this.unpost(request);
    for (const envelope of waiting) this.takeUnexpected(envelope);
    for (const request of posted) if (request.source === source) request.source = successor;
    for (const envelope of waiting) if (envelope.source === source) envelope.source = successor;
    // None of them matched another before, and all of a source are renamed together: none does now.
    for (const envelope of waiting) this.enqueue(envelope);
    for (const request of posted) this.queuePosted(request);
  }

  private countWildcards(request: RecvRequest, by: number): void {
    if (request.source === ANY) {
      if (request.tag === ANY) this.anything += by;
      else this.anySource += by;
    } else if (request.tag === ANY) this.anyTag += by;
  }

  /** All posted receives, and all unexpected messages, in no particular order. */
  postedRequests(): RecvRequest[] {
    const list: RecvRequest[] = [];
    for (const queue of this.posted.lists())
      for (let request = queue.head; request !== undefined; request = request.queueNext) list.push(request);
    return list;
  }
  unexpectedEnvelopes(): Envelope[] {
    return [...this.unexpectedNodes.keys()];
  }

  /** Picks the receive that was posted first, of two that fit. */
  private first(a: RecvRequest | undefined, b: RecvRequest | undefined): RecvRequest | undefined {
    if (a === undefined) return b;
    if (b === undefined) return a;
    return a.postedSerial < b.postedSerial ? a : b;
  }
}
