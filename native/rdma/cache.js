// Registrations that outlive one transfer: registering pins pages, which costs more than sending a few of them. Imports nothing.

/**
 * Memory regions on demand, for the memory of this side alone (the local end of sends, writes and reads): what the other side may reach
 * must end when it is said to end, and belongs in Domain.register(). Idle regions are kept, and keep their memory alive, up to
 * `idleBytesMax` bytes and `idleRegionsMax` regions; the longest unused goes first.
 */
export class RegionCache {
  #domain;
  #access;
  #idleBytesMax;
  #idleRegionsMax;
  /** By the ArrayBuffer that they lie in. */
  #entries = new Map();
  /** Entries without a user, the longest unused first. */
  #idle = new Set();
  #idleBytes = 0;
  hits = 0;
  misses = 0;

  constructor(domain, access, { idleBytesMax = 256 * 1024 * 1024, idleRegionsMax = 1024 } = {}) {
    this.#domain = domain;
    this.#access = access;
    this.#idleBytesMax = idleBytesMax;
    this.#idleRegionsMax = idleRegionsMax;
  }

  /** The region in which these bytes lie, and where. Held until release(); throws what Domain.register() throws. */
  acquire(view) {
    const { buffer, byteOffset: from } = view;
    const to = from + view.byteLength;
    let list = this.#entries.get(buffer);
    let entry = list?.find((one) => one.from <= from && to <= one.to);
    if (entry === undefined) {
      this.misses++;
      const region = this.#register(view);
      entry = { region, buffer, from, to, users: 0, stale: false };
      list = this.#entries.get(buffer);
      if (list === undefined) this.#entries.set(buffer, [entry]);
      else list.push(entry);
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
