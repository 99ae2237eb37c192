// Runs the scenarios of bfo-rows.ts.
import { bfoRows } from './bfo-rows.ts';
import { registerScenarios } from './register.ts';

registerScenarios(bfoRows);
