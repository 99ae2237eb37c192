// The parameters of process failure; src/params.ts puts them into the table of all.
import { bool, int, type ParamRows, string } from '../../param-spec.ts';

export const FT_PARAMS = {
  ft: bool(
    'user',
    false,
    'Processes may die and the others go on: deaths are told to everybody, and communicators can be revoked, agree and shrink. The same at all ranks.',
  ),
  ft_spares: int(
    'user',
    0,
    'processes',
    0,
    4096,
    'So many of the processes of the start, those with the highest numbers, stand by to take the places of others that die; more than 0 implies ft. The same at all ranks.',
  ),
  ft_standby_connect: bool(
    'tuner',
    true,
    'The rails to those that stand by are made at the start, so that nothing has to be dialled when one of them is called in.',
  ),
  ft_join: string(
    'user',
    'none',
    'standby: this process joins a running job, whose parameter ft is on, and stands by there. It needs the rendezvous of the job and its secret.',
    ['none', 'standby'],
  ),
  ft_respawn: int(
    'user',
    0,
    'processes',
    0,
    8192,
    'At most so many processes are started in place of those that die (multirail run --respawn sets it); more than 0 implies ft. The same at all ranks.',
  ),
  ft_respawn_wait_ms: int(
    'user',
    10_000,
    'ms',
    0,
    600_000,
    'How long replace() waits for processes that are started in place of the dead, where too few stand by.',
  ),
  ft_on_own_failure: string(
    'user',
    'exit',
    'What a process does that the others have declared dead although it lives: exit with code 70, or end every call with an error.',
    ['exit', 'error'],
  ),
  ft_job: string(
    'user',
    'job',
    'Name of the job in the folders and stores of its saves: a job that is started again under the same name goes on from them.',
  ),
  ft_end_signal: string(
    'user',
    'SIGTERM',
    'Signal that tells a job under run() of multirail/ft to end: all ranks save at once, and the job ends with exit code 75; none = no signal does.',
    ['SIGTERM', 'SIGUSR1', 'SIGINT', 'none'],
  ),
  ft_quiet_ms: int(
    'user',
    1000,
    'ms',
    10,
    600_000,
    'A save is given up when messages of the program are still on their way after this time.',
  ),
  ft_body_grace_ms: int(
    'user',
    10_000,
    'ms',
    100,
    3_600_000,
    'How long the program of a rank may go on after its communicator was revoked, before the rank gives up.',
  ),
  ft_memory_bytes_max: int(
    'user',
    0,
    'bytes',
    0,
    2 ** 48,
    'Memory of a rank for its own images and the copies that it holds; 0 = half of what is free at the start, shared among the ranks of the host.',
  ),
} as const satisfies ParamRows;
