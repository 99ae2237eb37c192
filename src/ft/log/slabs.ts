// The memory of the log: slabs, in which messages stand one behind the other. A slab is free when nobody needs what is in it and nobody adds to
// it. Free ones are kept for the next use, for as long as there is room for them: memory that is touched for the first time costs more than the
// copy into it. Pure.

import type { ExportableMemory } from '../../pml/message-log.ts';

export interface Slab {
  readonly id: number;
  readonly memory: Uint8Array;
  /** It is of ExportableMemory. */
  readonly isExported: boolean;
  used: number;
  /** Messages in it that are in the log, or are read by rails. */
  users: number;
  /** Messages are still added to it. */
  isOpen: boolean;
}

/** For a message that has a slab to itself, a free one is taken that is longer by at most this part of it. */
const WASTE_MAX = 1 / 8;

export class Slabs {
  /** The usual length. Only messages that are longer have slabs of another. */
  readonly slabBytes: number;
  /** Memory of all slabs, and of the free ones among them. */
  bytes = 0;
  freeBytes = 0;
  /** By id. */
  private readonly all: (Slab | undefined)[] = [];
  private readonly freeIds: number[] = [];
  private readonly free: Slab[] = [];
  private readonly freeLong: Slab[] = [];
  private readonly exportable: ExportableMemory | undefined;

  constructor(slabBytes: number, exportable?: ExportableMemory) {
    this.slabBytes = slabBytes;
    this.exportable = exportable;
  }

  at(id: number): Slab {
    return this.all[id] as Slab;
  }

  /** A free one for a message of that length that is no longer than `bytesMax`; it is not free any more. */
  takeFree(bytes: number, bytesMax: number): Slab | undefined {
    const slab = bytes <= this.slabBytes ? this.free.pop() : this.takeLong(bytes, bytesMax);
    if (slab !== undefined) this.freeBytes -= slab.memory.length;
    return slab;
  }

  private takeLong(bytes: number, bytesMax: number): Slab | undefined {
    const { freeLong } = this;
    const max = Math.min(bytesMax, bytes * (1 + WASTE_MAX));
    const at = freeLong.findLastIndex(({ memory }) => memory.length >= bytes && memory.length <= max);
    return at < 0 ? undefined : freeLong.splice(at, 1)[0];
  }

  /** Another one, for a message of that length. */
  make(bytes: number): Slab {
    const length = Math.max(bytes, this.slabBytes);
    const exported = this.exportable?.make(length);
    const memory = exported ?? new Uint8Array(length);
    this.bytes += length;
    const slab: Slab = {
      id: this.freeIds.pop() ?? this.all.length,
      memory,
      isExported: exported !== undefined,
      used: 0,
      users: 0,
      isOpen: false,
    };
    this.all[slab.id] = slab;
    return slab;
  }

  /** One message less is in it, or is read. */
  release(slab: Slab): void {
    slab.users--;
    if (slab.users === 0) this.settle(slab);
  }

  /** Nothing is added to it any more. */
  close(slab: Slab): void {
    slab.isOpen = false;
    if (slab.users === 0) this.settle(slab);
  }

  private settle(slab: Slab): void {
    slab.used = 0;
    if (slab.isOpen) return;
    (slab.memory.length === this.slabBytes ? this.free : this.freeLong).push(slab);
    this.freeBytes += slab.memory.length;
  }

  /** Of the free ones, so many go that `bytes` bytes do, if there are as many; long ones first, which fit fewer messages. */
  drop(bytes: number): number {
    let dropped = 0;
    for (const free of [this.freeLong, this.free]) {
      for (let slab = dropped < bytes ? free.shift() : undefined; slab !== undefined; slab = dropped < bytes ? free.shift() : undefined) {
        this.all[slab.id] = undefined;
        this.freeIds.push(slab.id);
        dropped += slab.memory.length;
        if (slab.isExported) this.exportable?.drop(slab.memory);
      }
    }
    this.bytes -= dropped;
    this.freeBytes -= dropped;
    return dropped;
  }
}
