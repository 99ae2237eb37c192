// The sm component: works where the native part does.
import { loadNative } from '../../native/load.ts';
import type { BtlComponent } from '../btl.ts';
import { SmModule } from './module.ts';

export const smComponent: BtlComponent = {
  name: 'sm',
  description: 'Shared memory between processes of one host.',
  unavailable: () => {
    const reason = loadNative().reason;
    return reason === undefined ? undefined : `the native part is missing: ${reason}`;
  },
  create: (context) => new SmModule(context, () => performance.now()),
};
