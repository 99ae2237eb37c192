// The suite of collectives over the sockets of Node.
import { tcpComponent } from '../../src/btl/tcp/component.ts';
import { collSuite } from './coll-suite.ts';
import { realFixture } from './p2p-worlds.ts';

collSuite('tcp by node:net', realFixture([tcpComponent], { btl_tcp_native: 'false' }, false, 'none'));
