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
  ft_on_own_failure: string(
    'user',
    'exit',
    'What a process does that the others have declared dead although it lives: exit with code 70, or end every call with an error.',
    ['exit', 'error'],
  ),
} as const satisfies ParamRows;
