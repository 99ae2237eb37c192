// Scenarios of sends that are given up (given-up.ts).
import { givenUp } from './given-up.ts';
import { registerScenarios } from './register.ts';

registerScenarios([...givenUp()]);
