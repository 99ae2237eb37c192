// The point-to-point suite over one WebSocket per pair of ranks. With a single rail there is none that a fault could leave alone:
// faults are in p2p-mixed.test.ts.
import { wsComponent } from '../../src/btl/ws/component.ts';
import { realFixture } from '../support/p2p-worlds.ts';
import { p2pSuite } from './p2p-suite.ts';

p2pSuite('ws', realFixture([wsComponent]));
