// The ws component: works wherever Node does. May import: btl.ts (types), module.
import type { BtlComponent } from '../btl.ts';
import { WsModule } from './module.ts';

export const wsComponent: BtlComponent = {
  name: 'ws',
  description: 'WebSocket connections, with TLS by option: through proxies and firewalls that let nothing else pass.',
  unavailable: () => undefined,
  create: (context) => new WsModule(context),
};
