// A doubly linked list whose links are fields of its items: adding and deleting allocate nothing.

/** What an item must carry. An item stands in at most one list of its kind. */
export interface Linked<T> {
  listPrev: T | undefined;
  listNext: T | undefined;
  listed: boolean;
}

/** Items in the order in which they were added. */
export class LinkedList<T extends Linked<T>> {
  private head: T | undefined;
  private tail: T | undefined;
  private count = 0;

  get size(): number {
    return this.count;
  }

  add(item: T): void {
    if (item.listed) return;
    item.listed = true;
    item.listPrev = this.tail;
    item.listNext = undefined;
    if (this.tail === undefined) this.head = item;
    else this.tail.listNext = item;
    this.tail = item;
    this.count++;
  }

  delete(item: T): void {
    if (!item.listed) return;
    item.listed = false;
    const { listPrev, listNext } = item;
    if (listPrev === undefined) this.head = listNext;
    else listPrev.listNext = listNext;
    if (listNext === undefined) this.tail = listPrev;
    else listNext.listPrev = listPrev;
    item.listPrev = undefined;
    item.listNext = undefined;
    this.count--;
  }

  /** The item that the loop stands at may be deleted; others may not. */
  *[Symbol.iterator](): IterableIterator<T> {
    for (let item = this.head; item !== undefined; ) {
      const next: T | undefined = item.listNext;
      yield item;
      item = next;
    }
  }
}
