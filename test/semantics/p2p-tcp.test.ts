// The point-to-point suite over TCP connections of the native part, calm and with rails that break.
import { tcpComponent } from '../../src/btl/tcp/component.ts';
import { realFixture } from '../support/p2p-worlds.ts';
import { p2pSuite } from './p2p-suite.ts';

p2pSuite('native tcp, 2 links', realFixture([tcpComponent], { btl_tcp_links: '2' }, false, 'required'));
p2pSuite('native tcp, 3 links behind the interposer', realFixture([tcpComponent], { btl_tcp_links: '3' }, true, 'required'), {
  faultSeeds: ['tcp 1'],
});
