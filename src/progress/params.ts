// The parameters of how a rank waits; src/params.ts puts them into the table of all.
import { int, type ParamRows, string } from '../param-spec.ts';

export const PROGRESS_PARAMS = {
  mpi_spin_us: int(
    'tuner',
    200,
    'us',
    0,
    1_000_000,
    'How long the event loop goes on polling after the last useful work, while something is waited for; 0 = it sleeps at once. Native part only.',
  ),
  mpi_blocking_spin_us: int(
    'tuner',
    1000,
    'us',
    0,
    1_000_000,
    'How long a blocking call looks at its rails, and offers the processor to others now and then, before it sleeps in the kernel; less while other processes take the processor away.',
  ),
  mpi_yield_when_idle: string(
    'tuner',
    'auto',
    'Whether what waits offers the processor to others between two looks, and sleeps early: always, never, or auto, when the ranks of a host are more than the processors that they may use.',
    ['auto', 'always', 'never'],
  ),
} as const satisfies ParamRows;
