// The face of `multirail/ft`: what a program imports to survive failures, to plan saves, to keep images in a store, and to read them.

export {
  type Plan,
  type PlanCopies,
  type PlanGroups,
  type PlanInput,
  type PlannedCopies,
  type PlannedLevel,
  type PlannedPattern,
  type PlannedPeriod,
  plan,
} from './plan/plan.ts';
export { type Giver, type Line, recoveryLine } from './plan/recovery-line.ts';
export { type Scheme, type Tolerance, tolerance } from './plan/scheme.ts';
export type { FtJob } from './recover/job.ts';
export type { FtOptions, LevelSpec, ProcessPlace } from './recover/options.ts';
export type { JobRecovery, RecoveryTotal } from './recover/recovery.ts';
export type { ValueAccessors } from './recover/registry.ts';
export { run } from './recover/run.ts';
export { fileStore } from './store/file-store.ts';
export { memoryStore } from './store/memory-store.ts';
export { type Image, type ImageSection, imageArray, imageValue, readImage } from './store/read-image.ts';
export { type S3Options, s3Store } from './store/s3-store.ts';
export type { PutOptions, Store, StoreEntry } from './store/store.ts';
