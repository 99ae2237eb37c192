// The ws component: works wherever Node does.
import type { BtlComponent } from '../btl.ts';
import { WsModule } from './module.ts';

export const wsComponent: BtlComponent = {
  name: 'ws',
  description: 'WebSocket connections, with TLS by option: through proxies and firewalls that let nothing else pass.',
  unavailable: () => undefined,
  create: (context) => new WsModule(context),
};
