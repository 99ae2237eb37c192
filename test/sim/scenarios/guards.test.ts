// Scenarios of single guards (guards.ts).
import { guards } from './guards.ts';
import { registerScenarios } from './register.ts';

registerScenarios(guards);
