// Scenarios of steady rails and of those that are made on demand (steady.ts).
import { registerScenarios } from './register.ts';
import { steady } from './steady.ts';

registerScenarios(steady);
