// Runs the scenarios of holes.ts.
import { holes } from './holes.ts';
import { registerScenarios } from './register.ts';

registerScenarios(holes);
