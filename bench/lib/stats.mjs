// The statistics of all benches, and of the one with peers: which runs count, which runs may be compared, and what their ratios say. Pure: no clock, no
// input or output, and no chance but the seeded. Imports nothing.

/** A run during which others took more than this part of one CPU says nothing. */
export const FOREIGN_MAX = 0.08;
/** Fewer interleaved rounds of one core class show nothing. */
export const ROUNDS_MIN = 9;

/** A seeded generator of numbers in [0, 1) (mulberry32): plain JavaScript, since what runs unbuilt cannot import src/util/prng.ts. */
export function random(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = state;
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** A copy in an order that `next` draws (Fisher-Yates). */
export function shuffled(list, next) {
  const copy = [...list];
  for (let i = copy.length - 1; i > 0; i--) {
    const j = Math.floor(next() * (i + 1));
    [copy[i], copy[j]] = [copy[j], copy[i]];
  }
  return copy;
}

/** The middle value, or the mean of the two in the middle; NaN of none. */
export function median(values) {
  if (values.length === 0) return Number.NaN;
  const sorted = Float64Array.from(values).sort();
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

/** Percentile bootstrap interval of the median. The same values and seed always give the same interval. */
export function bootstrapMedian(values, { seed = 1, resamples = 10_000, confidence = 0.95 } = {}) {
  if (values.length === 0) return { low: Number.NaN, high: Number.NaN };
  const next = random(seed);
  const medians = new Float64Array(resamples);
  const drawn = new Float64Array(values.length);
  for (let i = 0; i < resamples; i++) {
    for (let j = 0; j < drawn.length; j++) drawn[j] = values[Math.floor(next() * values.length)];
    medians[i] = median(drawn);
  }
  medians.sort();
  const tail = (1 - confidence) / 2;
  return { low: medians[Math.floor(tail * (resamples - 1))], high: medians[Math.ceil((1 - tail) * (resamples - 1))] };
}

/**
 * Where the two CPUs are, by half the round trip of one cache line in ns; 'none' between the classes, and beyond them, where the probe
 * did not have the CPUs to itself.
 */
export function coreClass(probeNs) {
  if (probeNs < 35) return 'smt';
  if (probeNs < 120) return 'near';
  return probeNs >= 200 && probeNs < 600 ? 'far' : 'none';
}

/** Class of a run; 'any' where the place of the CPUs does not decide what is measured. */
const classOf = (run) => (run.placed === false ? 'any' : coreClass(run.beforeNs));

/** Why a run does not count; undefined when it does. */
export function rejection(run, foreignMax = FOREIGN_MAX) {
  if (!run.ok) return 'failed';
  if (run.foreign > foreignMax) return 'foreign';
  if (run.placed === false) return undefined;
  const [before, after] = [coreClass(run.beforeNs), coreClass(run.afterNs)];
  if (before !== after) return 'moved';
  return before === 'none' ? 'unplaced' : undefined;
}

/** The first run that counts of each contender in each round, with its class. */
export function acceptedRuns(runs, foreignMax = FOREIGN_MAX) {
  const accepted = new Map();
  for (const run of runs) {
    if (rejection(run, foreignMax) !== undefined) continue;
    const key = JSON.stringify([run.session, run.round, run.contender]);
    const known = accepted.get(key);
    if (known === undefined || run.attempt < known.attempt) accepted.set(key, { ...run, coreClass: classOf(run) });
  }
  return [...accepted.values()];
}

/** subject / reference in each round in which both were run with the CPUs in the same class, by class. */
export function pairedRatios(runs, { subject, reference, metric, size }) {
  const cellOf = (run) => run.cells.find((cell) => cell.metric === metric && cell.size === size)?.value;
  const references = new Map();
  const key = (run) => JSON.stringify([run.session, run.round, run.coreClass]);
  for (const run of runs) if (run.contender === reference) references.set(key(run), cellOf(run));
  const ratios = new Map();
  for (const run of runs) {
    if (run.contender !== subject) continue;
    const [above, below] = [cellOf(run), references.get(key(run))];
    if (!(above > 0) || !(below > 0)) continue;
    if (!ratios.has(run.coreClass)) ratios.set(run.coreClass, []);
    ratios.get(run.coreClass).push(above / below);
  }
  return ratios;
}

/**
 * Median ratio with its bootstrap 95 % interval against `atMost` or `atLeast`. Met only when the whole interval is on the right side:
 * what straddles the target is missed.
 */
export function judge(ratios, { atMost, atLeast }, roundsMin = ROUNDS_MIN) {
  if ((atMost === undefined) === (atLeast === undefined)) throw new TypeError('a target is either atMost or atLeast');
  const { low, high } = bootstrapMedian(ratios);
  const isMet = atMost === undefined ? low >= atLeast : high <= atMost;
  const verdict = ratios.length < roundsMin ? 'not enough rounds' : isMet ? 'met' : 'missed';
  return { verdict, rounds: ratios.length, ratio: median(ratios), low, high };
}
