// The parameters of process failure; src/params.ts puts them into the table of all.
import { bool, type ParamRows, string } from '../../param-spec.ts';

export const FT_PARAMS = {
  ft: bool(
    'user',
    false,
    'Processes may die and the others go on: deaths are told to everybody, and communicators can be revoked, agree and shrink. The same at all ranks.',
  ),
  ft_on_own_failure: string(
    'user',
    'exit',
    'What a process does that the others have declared dead although it lives: exit with code 70, or end every call with an error.',
    ['exit', 'error'],
  ),
} as const satisfies ParamRows;
