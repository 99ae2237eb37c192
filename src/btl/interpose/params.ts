// The parameters of the fault interposer; src/params.ts puts them into the table of all.
import { type ParamRows, string } from '../../param-spec.ts';

export const FAULT_PARAMS = {
  btl_fault: string(
    'developer',
    '',
    'Wrap every transport in the fault interposer with this plan (see docs/guide/tuning.md); for tests and demonstrations.',
  ),
} as const satisfies ParamRows;
