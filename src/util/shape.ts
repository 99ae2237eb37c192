// The shapes of long-lived objects. V8 compiles a function for what it has seen so far: a field that was never written again, that has held
// only small whole numbers, or objects of one class. The first write of another kind throws away all compiled code that knows the class.
// In a rail's life much is written for the first time when it fails for the first time, which is the worst moment: some seventy functions
// of the hot path were thrown away, and for two seconds short messages over the healthy rail took three to ten times as long. So rails that
// may fail are shown at the start what their fields may hold. It is not for everything: a field that may hold anything costs each of its
// readers a check, and a number that may be any is read through a pointer. Counts of bytes on all rails begin as wide-zero.ts says instead.
import { assert } from './assert.ts';

/** Names that end with a unit whose values may be fractions. */
const UNITS = /(?:Ms|Rate|rate|Scale)$/;

class Other {}
const OTHER = new Other();
const settledClasses = new WeakSet<object>();

/**
 * Writes each field that holds no object, or an empty array, once more with something else, and puts back what it held. `fractions` names
 * numbers that may be fractions or large although their names do not say so. What is learnt of the first object of a class holds for all that
 * come after it: for them the call does nothing.
 */
export function settleShape(object: object, fractions: readonly string[] = []): void {
  const ownClass = object.constructor;
  if (ownClass !== Object) {
    if (settledClasses.has(ownClass)) return;
    settledClasses.add(ownClass);
  }
  const fields = object as Record<string, unknown>;
  for (const name of fractions) assert(typeof fields[name] === 'number', `${ownClass.name} has no number ${name}`);
  for (const [name, value] of Object.entries(fields)) {
    for (const other of othersThan(value, fractions.includes(name) || UNITS.test(name))) fields[name] = other;
    fields[name] = value;
    if (isEmptyArray(value)) {
      value.push(OTHER);
      value.pop();
    }
  }
}

function othersThan(value: unknown, mayBeFraction: boolean): unknown[] {
  switch (typeof value) {
    case 'number':
      return mayBeFraction ? [0.5] : [];
    case 'boolean':
      return [!value];
    case 'string':
      return [value === '' ? 'other' : ''];
    case 'undefined':
      return [1, OTHER];
    default:
      return isEmptyArray(value) ? [OTHER] : [];
  }
}

function isEmptyArray(value: unknown): value is unknown[] {
  return Array.isArray(value) && value.length === 0;
}
