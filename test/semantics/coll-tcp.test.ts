// The suite of collectives over TCP connections of the native part, calm and with rails that break.
import { tcpComponent } from '../../src/btl/tcp/component.ts';
import { realFixture } from '../support/p2p-worlds.ts';
import { collSuite } from './coll-suite.ts';

collSuite('native tcp', realFixture([tcpComponent], {}, false, 'required'), { everyAlgorithm: true });
collSuite('native tcp, 2 links behind the interposer', realFixture([tcpComponent], { btl_tcp_links: '2' }, true, 'required'), {
  faultSeeds: ['coll tcp 1'],
});
