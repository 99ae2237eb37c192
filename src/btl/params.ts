// The parameters that say which transports are used; src/params.ts puts them into the table of all parameters.
import { list, type ParamRows } from '../param-spec.ts';

export const BTL_PARAMS = {
  btl: list(
    'user',
    'self,sm,verbs,tcp',
    'Transports to use, comma separated; a leading ^ means all but these. One that cannot work here is left out.',
  ),
} as const satisfies ParamRows;
