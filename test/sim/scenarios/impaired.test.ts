// Scenarios of rails that are bad without being down (impaired.ts).
import { impaired } from './impaired.ts';
import { registerScenarios } from './register.ts';

registerScenarios([...impaired()]);
