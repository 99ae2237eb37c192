// Matching for one context: the posted queue and the unexpected queue of MPI, with wildcards.
// May import: records.ts (types), util.
//
// Both queues are kept by pattern, so that a match is found by looking at heads of lists, never by a search:
//
//   a posted receive stands in ONE list, that of its own pattern    (s,t) (s,*) (*,t) (*,*)
//   an unexpected message stands in FOUR lists, all patterns that match it, each in arrival order
//
// An arrival (s,t) looks at the four heads that could take it and picks the oldest receive. A receive with pattern p
// looks at the head of list p. Both are O(1); the price is four list insertions per unexpected message.
import type { Envelope, RecvRequest } from './records.ts';

/** Wildcards, in the source and in the tag of a receive. */
export const ANY = -1;

class Node<T> {
  readonly item: T;
  list: List<T> | undefined;
  prev: Node<T> | undefined;
  next: Node<T> | undefined;
  constructor(item: T) {
    this.item = item;
  }
}

class List<T> {
  head: Node<T> | undefined;
  tail: Node<T> | undefined;

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

/** Lists by (source, tag), either of which may be ANY. Empty lists are kept while there are few, then swept. */
class PatternLists<T> {
  private readonly bySource = new Map<number, Map<number, List<T>>>();
  private lists = 0;
  private sweepAt = 1024;

  find(source: number, tag: number): List<T> | undefined {
    return this.bySource.get(source)?.get(tag);
  }

  at(source: number, tag: number): List<T> {
    let byTag = this.bySource.get(source);
    if (byTag === undefined) {
      byTag = new Map();
      this.bySource.set(source, byTag);
    }
    let list = byTag.get(tag);
    if (list === undefined) {
      list = new List();
      byTag.set(tag, list);
      if (++this.lists > this.sweepAt) this.sweep(list);
    }
    return list;
  }

  /** Programs that use every tag once would otherwise leave a list behind for each. */
  private sweep(keep: List<T>): void {
    for (const byTag of this.bySource.values()) {
      for (const [tag, list] of byTag) {
        if (list.head === undefined && list !== keep) {
          byTag.delete(tag);
          this.lists--;
        }
      }
    }
    this.sweepAt = Math.max(1024, this.lists * 2);
  }

  *items(): IterableIterator<T> {
    for (const byTag of this.bySource.values()) {
      for (const list of byTag.values()) for (let node = list.head; node !== undefined; node = node.next) yield node.item;
    }
  }
}

/** The matching state of one context id. Sources are world ranks. */
export class MatchContext {
  private readonly posted = new PatternLists<RecvRequest>();
  private readonly unexpected = new PatternLists<Envelope>();
  private readonly postedNodes = new Map<RecvRequest, Node<RecvRequest>>();
  private readonly unexpectedNodes = new Map<Envelope, Node<Envelope>[]>();
  private postedSerial = 0;
  /** A planted mistake (see MUTANTS); false in earnest. */
  private readonly newestFirst: boolean;

  constructor(newestFirst = false) {
    this.newestFirst = newestFirst;
  }

  get postedCount(): number {
    return this.postedNodes.size;
  }
  get unexpectedCount(): number {
    return this.unexpectedNodes.size;
  }

  /** The oldest unexpected message that the pattern matches; it stays queued. */
  probe(source: number, tag: number): Envelope | undefined {
    return this.unexpected.find(source, tag)?.head?.item;
  }

  /** Takes a message out of the unexpected queue (a matched probe, or a receive that found it). */
  takeUnexpected(envelope: Envelope): void {
    const nodes = this.unexpectedNodes.get(envelope);
    if (nodes === undefined) return;
    for (const node of nodes) List.unlink(node);
    this.unexpectedNodes.delete(envelope);
  }

  /** A receive is posted: returns the unexpected message it matches, else queues the receive. */
  post(request: RecvRequest): Envelope | undefined {
    const envelope = this.probe(request.source, request.tag);
    if (envelope !== undefined) {
      this.takeUnexpected(envelope);
      return envelope;
    }
    request.postedSerial = ++this.postedSerial;
    const node = new Node(request);
    this.posted.at(request.source, request.tag).append(node);
    this.postedNodes.set(request, node);
    return undefined;
  }

  /** A message arrives, in sequence: returns the receive it matches, else queues the message. */
  arrive(envelope: Envelope): RecvRequest | undefined {
    const { source, tag } = envelope;
    let best = this.posted.find(source, tag)?.head?.item;
    best = this.first(best, this.posted.find(source, ANY)?.head?.item);
    best = this.first(best, this.posted.find(ANY, tag)?.head?.item);
    best = this.first(best, this.posted.find(ANY, ANY)?.head?.item);
    if (best !== undefined) {
      this.unpost(best);
      return best;
    }
    const nodes: Node<Envelope>[] = [];
    for (const [s, t] of [
      [source, tag],
      [source, ANY],
      [ANY, tag],
      [ANY, ANY],
    ]) {
      const node = new Node(envelope);
      this.unexpected.at(s, t).append(node);
      nodes.push(node);
    }
    this.unexpectedNodes.set(envelope, nodes);
    return undefined;
  }

  /** Takes a posted receive back; false when it is not posted (any more). */
  unpost(request: RecvRequest): boolean {
    const node = this.postedNodes.get(request);
    if (node === undefined) return false;
    List.unlink(node);
    this.postedNodes.delete(request);
    return true;
  }

  /** All posted receives, and all unexpected messages, in no particular order. */
  postedRequests(): RecvRequest[] {
    return [...this.postedNodes.keys()];
  }
  unexpectedEnvelopes(): Envelope[] {
    return [...this.unexpectedNodes.keys()];
  }

  /** Of two receives that fit, the one that was posted first. */
  private first(a: RecvRequest | undefined, b: RecvRequest | undefined): RecvRequest | undefined {
    if (a === undefined) return b;
    if (b === undefined) return a;
    return a.postedSerial < b.postedSerial !== this.newestFirst ? a : b;
  }
}
