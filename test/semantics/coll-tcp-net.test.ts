// The suite of collectives over the sockets of Node.
import { tcpComponent } from '../../src/btl/tcp/component.ts';
import { realFixture } from '../support/p2p-worlds.ts';
import { collSuite } from './coll-suite.ts';

collSuite('tcp by node:net', realFixture([tcpComponent], { btl_tcp_native: 'false' }, false, 'none'));
