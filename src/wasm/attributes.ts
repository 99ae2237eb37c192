// Attributes of communicators and datatypes (MPI-4.1, section 7.7): values that the program ties to them, with functions that copy and delete.
import * as abi from './abi.ts';
import { fail, MpiError } from './errors.ts';
import type { Keyval, Machine } from './machine.ts';

/** What attributes are tied to. */
export interface Attributed {
  readonly handle: number;
  readonly attributes: Map<number, number>;
}

/** MPI_NULL_COPY_FN and MPI_DUP_FN, which are no functions of the program. */
const NULL_COPY = 0;
const DUP = 1;

export class Attributes {
  private readonly m: Machine;
  private readonly owner: Keyval['owner'];

  constructor(m: Machine, owner: Keyval['owner']) {
    this.m = m;
    this.owner = owner;
  }

  create(copy: number, remove: number, at: number, extra: number): void {
    this.m.memory.setInt(at, this.m.keyvals.add({ owner: this.owner, copy, remove, extra, isFreed: false }));
  }

  private find(key: number): Keyval {
    const keyval = this.m.keyvals.find(key);
    if (keyval === undefined || keyval.owner !== this.owner) return fail('KEYVAL', `${key} is no key of attributes of this kind of object`);
    return keyval;
  }

  free(at: number): void {
    const { memory } = this.m;
    // Attributes that have it keep their functions.
    this.find(memory.int(at)).isFreed = true;
    memory.setInt(at, abi.KEYVAL_INVALID);
  }

  set(object: Attributed, key: number, value: number): void {
    const keyval = this.find(key);
    const old = object.attributes.get(key);
    if (old !== undefined) this.remove(object, key, old, keyval);
    object.attributes.set(key, value);
  }

  get(object: Attributed, key: number, at: number, flag: number): void {
    this.find(key);
    const value = object.attributes.get(key);
    this.m.memory.setInt(flag, value === undefined ? 0 : 1);
    if (value !== undefined) this.m.memory.setInt(at, value);
  }

  delete(object: Attributed, key: number): void {
    const keyval = this.find(key);
    const value = object.attributes.get(key);
    if (value === undefined) return fail('KEYVAL', 'the object has no such attribute');
    this.remove(object, key, value, keyval);
  }

  private remove(object: Attributed, key: number, value: number, { remove, extra }: Keyval): void {
    if (remove !== NULL_COPY) {
      const code = this.m.callback(remove, object.handle, key, value, extra);
      if (code !== 0) throw new MpiError(code, 'the function that deletes an attribute has failed');
    }
    object.attributes.delete(key);
  }

  /** The object goes: the last attribute first. */
  deleteAll(object: Attributed): void {
    for (const [key, value] of [...object.attributes].reverse()) {
      const keyval = this.m.keyvals.find(key);
      if (keyval !== undefined) this.remove(object, key, value, keyval);
    }
  }

  /** The copy of an object gets what the functions give it. */
  copyAll(from: Attributed, into: Attributed): void {
    const { m } = this;
    for (const [key, value] of from.attributes) {
      const keyval = m.keyvals.find(key);
      if (keyval === undefined || keyval.copy === NULL_COPY) continue;
      if (keyval.copy === DUP) {
        into.attributes.set(key, value);
        continue;
      }
      const at = m.spareMemory() + 16;
      const code = m.callback(keyval.copy, from.handle, key, keyval.extra, value, at, at + 4);
      if (code !== 0) throw new MpiError(code, 'the function that copies an attribute has failed');
      if (m.memory.int(at + 4) !== 0) into.attributes.set(key, m.memory.int(at));
    }
  }
}
