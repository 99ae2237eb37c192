// The parameters of the out-of-band channel; src/params.ts puts them into the table of all.
import { bool, int, type ParamRows } from '../../param-spec.ts';

export const OOB_PARAMS = {
  oob_reconnect_timeout_ms: int(
    'user',
    60_000,
    'ms',
    100,
    2 ** 31,
    'How long the out-of-band channel may be away before the launcher is taken for dead.',
  ),
  oob_join_timeout_ms: int(
    'user',
    120_000,
    'ms',
    100,
    2 ** 31,
    'How long a rank that another starter has started looks for its job, and how long the others wait for it.',
  ),
  oob_served: bool(
    'user',
    false,
    'The out-of-band channel is served by a process of its own (multirail rendezvous): rank 0 starts none, and is looked for nowhere. The same at all ranks.',
  ),
  oob_exit_grace_ms: int(
    'developer',
    2000,
    'ms',
    0,
    2 ** 31,
    'A rank without launcher of ours whose kernel has closed its lifeline is dead unless it is back within this time.',
  ),
} as const satisfies ParamRows;
