// Runs the scenarios of holes-more.ts.
import { holesMore } from './holes-more.ts';
import { registerScenarios } from './register.ts';

registerScenarios(holesMore);
