// The parameters of the runtime of a rank; src/params.ts puts them into the table of all.
import { bool, int, type ParamRows, string } from '../param-spec.ts';

export const MPI_PARAMS = {
  mpi_preconnect: string('user', 'none', 'Which other ranks are connected at the start: none (each one when it is first needed), or all.', [
    'none',
    'all',
  ]),
  mpi_finalize_timeout_ms: int(
    'user',
    30_000,
    'ms',
    100,
    2 ** 31,
    'finalize() names what is not delivered and gives up after this time. By default, time in which other ranks still leave does not count, and there is more of it where many ranks share a processor.',
  ),
  mpi_abort_on_uncaught: bool('user', true, 'An uncaught exception or unhandled rejection of one rank ends the whole job, with its stack.'),
  mpi_waits_on_signal: bool(
    'user',
    true,
    'SIGUSR2 to a rank prints who waits for whom in the whole job; false leaves the signal to the program.',
  ),
  mpi_stall_report_ms: int(
    'user',
    0,
    'ms',
    0,
    2 ** 31,
    'When a request of a rank has waited for this long and nothing of it moved, the job prints who waits for whom; 0 = never.',
  ),
  mpi_waits_json_file: string(
    'user',
    '',
    'Who waits for whom is also appended to this file, one line of JSON per report, by whoever prints it.',
  ),
  mpi_telemetry_ms: int(
    'developer',
    0,
    'ms',
    0,
    60_000,
    'How often a rank tells the launcher the state of its rails, for the dashboard and its events; 0 = never. multirail run sets it where it is needed.',
  ),
} as const satisfies ParamRows;
