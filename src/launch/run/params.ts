// The parameters of how `multirail run` starts ranks on other hosts; src/params.ts puts them into the table of all parameters.
import { type ParamRows, string } from '../../param-spec.ts';

export const RUN_PARAMS = {
  plm_rsh_agent: string(
    'user',
    'ssh',
    'Command, with its options, by which `multirail run` reaches other hosts; it gets the host and a command.',
  ),
  plm_rsh_node: string(
    'user',
    '',
    'Node on other hosts; empty = at the same path as here. multirail itself has to be at the same path in any case.',
  ),
} as const satisfies ParamRows;
