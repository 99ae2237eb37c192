// What only jobs need that survive failures: loaded by ../job-parts.ts.
export { FaultTolerance } from './fault-tolerance.ts';
export { standByToHelp } from './helping.ts';
export { LoggedStreams } from './logged-streams.ts';
export { partitionOptions } from './partition-watch.ts';
export { RecoverySeries } from './recovery-series.ts';
