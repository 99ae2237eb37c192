// The suite of collectives over WebSockets.
import { wsComponent } from '../../src/btl/ws/component.ts';
import { collSuite } from './coll-suite.ts';
import { realFixture } from './p2p-worlds.ts';

collSuite('ws', realFixture([wsComponent]));
