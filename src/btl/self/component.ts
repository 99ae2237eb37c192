// The self component: a rank's rail to itself.
import type { BtlComponent } from '../btl.ts';
import { SelfModule } from './module.ts';

export const selfComponent: BtlComponent = {
  name: 'self',
  description: 'A rank to itself, in memory.',
  unavailable: () => undefined,
  create: (context) => new SelfModule(context),
};
