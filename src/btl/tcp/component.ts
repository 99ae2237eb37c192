// The tcp component: works wherever Node does. May import: btl.ts (types), module.
import type { BtlComponent } from '../btl.ts';
import { TcpModule } from './module.ts';

export const tcpComponent: BtlComponent = {
  name: 'tcp',
  description: 'TCP connections, one or more per pair of network interfaces.',
  unavailable: () => undefined,
  create: (context) => new TcpModule(context),
};
