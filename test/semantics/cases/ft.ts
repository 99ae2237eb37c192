// All cases of process failure.
import type { FtCase } from '../../support/ft-worlds.ts';
import { FT_AGREEMENT_CASES } from './ft-agreement.ts';
import { FT_BLOCKING_CASES } from './ft-blocking.ts';
import { FT_CALL_CASES } from './ft-calls.ts';
import { FT_PROGRAM_CASES } from './ft-programs.ts';
import { FT_REPLACE_CASES } from './ft-replace.ts';

export const FT_CASES: readonly FtCase[] = [
  ...FT_CALL_CASES,
  ...FT_AGREEMENT_CASES,
  ...FT_BLOCKING_CASES,
  ...FT_REPLACE_CASES,
  ...FT_PROGRAM_CASES,
];
