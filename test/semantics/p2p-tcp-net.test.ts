// The point-to-point suite over TCP connections of node:net, as without the native part, calm and with rails that break.
import { tcpComponent } from '../../src/btl/tcp/component.ts';
import { realFixture } from '../support/p2p-worlds.ts';
import { p2pSuite } from './p2p-suite.ts';

p2pSuite('node:net tcp, 2 links', realFixture([tcpComponent], { btl_tcp_links: '2' }, false, 'none'));
p2pSuite('node:net tcp, 3 links behind the interposer', realFixture([tcpComponent], { btl_tcp_links: '3' }, true, 'none'), {
  faultSeeds: ['tcp 1'],
});
