// The shapes of long-lived objects. V8 compiles a function for what it has seen so far: a field that was never written again, that has held
// only small whole numbers, or objects of one class. The first write of another kind throws away all compiled code that knows the class.
// In a rail's life much is written for the first time when it fails for the first time, which is the worst moment: some seventy functions
// of the hot path were thrown away, and for two seconds short messages over the healthy rail took three to ten times as long. So rails that
// may fail are shown at the start what their fields may hold. It is not for everything: a field that may hold anything costs each of its
// readers a check, and a number that may be any is read through a pointer.
import { assert } from './assert.ts';

/** Names that end with a unit whose values may be fractions. */
const UNITS = /(?:Ms|Rate|rate|Scale)$/;

class Other {}
const OTHER = new Other();
const settledClasses = new WeakSet<object>();

/**
 * Writes each field that holds no object, or an empty array, once more with something else, and puts back what it held. `also` names fields
 * that hold an object and are set again later, and numbers that may be fractions or large although their names do not say so. What is learnt
 * of the first object of a class holds for all that come after it: for them the call does nothing.
 */
export function settleShape(object: object, also: readonly string[] = []): void {
  const ownClass = object.constructor;
  if (ownClass !== Object) {
    if (settledClasses.has(ownClass)) return;
    settledClasses.add(ownClass);
  }
  const fields = object as Record<string, unknown>;
  for (const name of also) assert(Object.hasOwn(fields, name), `${ownClass.name} has no field ${name}`);
  for (const name of Object.keys(fields)) {
    const value = fields[name];
    for (const other of othersOf(name, value, also.includes(name))) fields[name] = other;
    fields[name] = value;
    if (Array.isArray(value) && value.length === 0) {
      value.push(OTHER);
      value.pop();
    }
  }
}

function othersOf(name: string, value: unknown, isNamed: boolean): unknown[] {
  switch (typeof value) {
    case 'number':
      return isNamed || UNITS.test(name) ? [0.5] : [];
    case 'boolean':
      return [!value];
    case 'string':
      return [value === '' ? 'other' : ''];
    case 'undefined':
      return [1, OTHER];
    case 'object':
      return value === null ? [1, OTHER] : isNamed || (Array.isArray(value) && value.length === 0) ? [OTHER] : [];
    default:
      return [];
  }
}
