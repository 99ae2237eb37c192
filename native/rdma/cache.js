// Registrations that outlive one transfer: registering pins pages, which costs more than sending a few of them. Imports nothing.

/**
 * Memory regions on demand, for the memory of this side alone (the local end of sends, writes and reads): what the other side may reach
 * must end when it is said to end, and belongs in Domain.register(). A region reaches to the borders of `granuleBytes` around what is asked
 * for, within its ArrayBuffer, so that a long message is registered in a few steps while it goes. Idle regions are kept, and keep their
 * memory alive, up to `idleBytesMax` bytes and `idleRegionsMax` regions; the longest unused goes first.
 */
export class RegionCache {
  #domain;
  #access;
  #idleBytesMax;
  #idleRegionsMax;
  #granuleBytes;
  /** By the ArrayBuffer that they lie in, sorted by where they begin. */
  #entries = new Map();
  /** Entries without a user, the longest unused first. */
  #idle = new Set();
  #idleBytes = 0;
  hits = 0;
  misses = 0;

  constructor(domain, access, { idleBytesMax = 256 * 1024 * 1024, idleRegionsMax = 1024, granuleBytes = 2 * 1024 * 1024 } = {}) {
    this.#domain = domain;
    this.#access = access;
    this.#idleBytesMax = idleBytesMax;
    this.#idleRegionsMax = idleRegionsMax;
    this.#granuleBytes = granuleBytes;
  }

  /** The region in which these bytes lie, and where. Held until release(); throws what Domain.register() throws. */
  acquire(view) {
    const { buffer, byteOffset: from } = view;
    const to = from + view.byteLength;
    let entry = find(this.#entries.get(buffer), from, to);
    if (entry === undefined) {
      this.misses++;
      entry = this.#make(buffer, from, to);
    } else {
      this.hits++;
      if (entry.users === 0) this.#wake(entry);
    }
    entry.users++;
    return { region: entry.region, offset: from - entry.from, entry };
  }

  release({ entry }) {
    if (--entry.users > 0) return;
    if (entry.stale) {
      entry.region.close();
      return;
    }
    this.#idle.add(entry);
    this.#idleBytes += entry.to - entry.from;
    while (this.#idleBytes > this.#idleBytesMax || this.#idle.size > this.#idleRegionsMax) this.#evict();
  }

  /** The memory is about to be transferred or given back: its regions go, those in use with their last user. */
  invalidate(buffer) {
    for (const entry of this.#entries.get(buffer) ?? []) {
      entry.stale = true;
      if (entry.users > 0) continue;
      this.#wake(entry);
      entry.region.close();
    }
    this.#entries.delete(buffer);
  }

  /** Every region, whether in use or not. */
  close() {
    for (const list of this.#entries.values()) {
      for (const entry of list) {
        entry.stale = true;
        entry.region.close();
      }
    }
    this.#entries.clear();
    this.#idle.clear();
    this.#idleBytes = 0;
  }

  #make(buffer, from, to) {
    const granule = this.#granuleBytes;
    const begin = Math.floor(from / granule) * granule;
    const end = Math.min(Math.ceil(to / granule) * granule, buffer.byteLength);
    const region = this.#register(new Uint8Array(buffer, begin, end - begin));
    const entry = { region, buffer, from: begin, to: end, users: 0, stale: false };
    const list = this.#entries.get(buffer);
    if (list === undefined) this.#entries.set(buffer, [entry]);
    else list.splice(placeOf(list, begin), 0, entry);
    return entry;
  }

  /** A device, or the limit on locked memory, may hold fewer regions than the cache: the idle ones make room. */
  #register(view) {
    for (;;) {
      try {
        return this.#domain.register(view, this.#access);
      } catch (error) {
        if (this.#idle.size === 0) throw error;
        this.#evict();
      }
    }
  }

  #wake(entry) {
    if (this.#idle.delete(entry)) this.#idleBytes -= entry.to - entry.from;
  }

  #evict() {
    const [entry] = this.#idle;
    this.#wake(entry);
    const list = this.#entries.get(entry.buffer).filter((one) => one !== entry);
    if (list.length === 0) this.#entries.delete(entry.buffer);
    else this.#entries.set(entry.buffer, list);
    entry.region.close();
  }
}

/** Index of the first entry that begins beyond `from`. */
function placeOf(list, from) {
  let low = 0;
  let high = list.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (list[middle].from > from) high = middle;
    else low = middle + 1;
  }
  return low;
}

/** The entry in which these bytes lie. Regions may overlap, so the one that begins last before them need not be it. */
function find(list, from, to) {
  if (list === undefined) return undefined;
  for (let i = placeOf(list, from) - 1; i >= 0; i--) if (list[i].to >= to) return list[i];
  return undefined;
}
