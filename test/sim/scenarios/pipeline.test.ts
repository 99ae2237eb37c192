// Scenarios of pipelined registration (pipeline.ts).
import { pipeline } from './pipeline.ts';
import { registerScenarios } from './register.ts';

registerScenarios([...pipeline()]);
