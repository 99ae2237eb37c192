// The parameters of the BML.
import type { HealthLimits } from './health.ts';

export interface BmlOptions extends HealthLimits {
  rank: number;
  /** How many times as long as alone everything takes here, since other ranks share the processors; 1 = they do not. */
  crowd: number;
  railTimeoutMs: number;
  probeIdleMs: number;
  redialMinMs: number;
  redialMaxMs: number;
  connectTimeoutMs: number;
  /** Spare rails (spares.ts) are made when they are needed, and not with the others. */
  holdsSpares: boolean;
  flapWindowMs: number;
  flapHoldMaxMs: number;
  windowMinBytes: number;
  windowMaxBytes: number;
  windowMs: number;
  /** Fragment grid; the longest fragment; and how long a rail may need for one that is longer than the grid. */
  fragBytes: number;
  fragBytesMax: number;
  fragUs: number;
}
