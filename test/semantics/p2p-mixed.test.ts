// The point-to-point suite over rails of two kinds at once, calm and with rails that break.
import { tcpComponent } from '../../src/btl/tcp/component.ts';
import { wsComponent } from '../../src/btl/ws/component.ts';
import { realFixture } from '../support/p2p-worlds.ts';
import { p2pSuite } from './p2p-suite.ts';

p2pSuite('tcp and ws behind the interposer', realFixture([tcpComponent, wsComponent], { btl_tcp_links: '2' }, true), {
  faultSeeds: ['mixed 1'],
  neverSampled: true,
});
