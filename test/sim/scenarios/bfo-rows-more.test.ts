// Runs the scenarios of bfo-rows-more.ts.
import { bfoRowsMore } from './bfo-rows-more.ts';
import { registerScenarios } from './register.ts';

registerScenarios(bfoRowsMore);
