// The first value of counts that pass 2^31 in a long job.

const half = Number('0.5');

/**
 * 0, but as a number of floating point. V8 gives a field the form of what it first sees there. Where that is a small integer, and a count of
 * bytes passes 2^31 (after 2 GiB, a fifth of a second through shared memory), every function that touches such an object loses its compiled code
 * at that moment: a stream that had 11 GB/s went on with 4 for half a second. A difference of fractions stays what it is, and no tool folds this one.
 */
export const WIDE_ZERO = half - half;
