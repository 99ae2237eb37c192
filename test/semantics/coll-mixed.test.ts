// The suite of collectives over rails of two kinds at once, calm and with rails that break.
import { tcpComponent } from '../../src/btl/tcp/component.ts';
import { wsComponent } from '../../src/btl/ws/component.ts';
import { realFixture } from '../support/p2p-worlds.ts';
import { collSuite } from './coll-suite.ts';

collSuite('tcp and ws behind the interposer', realFixture([tcpComponent, wsComponent], { btl_tcp_links: '2' }, true), {
  faultSeeds: ['coll mixed 1'],
});
