// The suite of collectives over WebSockets.
import { wsComponent } from '../../src/btl/ws/component.ts';
import { realFixture } from '../support/p2p-worlds.ts';
import { collSuite } from './coll-suite.ts';

collSuite('ws', realFixture([wsComponent]));
