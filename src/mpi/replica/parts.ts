// What only ranks of several processes need, or those that break what they send on purpose: loaded by ../job-parts.ts.
export { injectorOf } from './inject.ts';
export { PairedSeries } from './paired-series.ts';
export { ReplicaProcess } from './replica-process.ts';
