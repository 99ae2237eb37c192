// The tcp component: works wherever Node does.
import type { BtlComponent } from '../btl.ts';
import { TcpModule } from './module.ts';

export const tcpComponent: BtlComponent = {
  name: 'tcp',
  description: 'TCP connections, one or more per pair of network interfaces.',
  unavailable: () => undefined,
  create: (context) => new TcpModule(context),
};
