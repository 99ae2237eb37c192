// The point-to-point suite over one WebSocket per pair of ranks. A single rail leaves no other one up during a fault: faults are in
// p2p-mixed.test.ts.
import { wsComponent } from '../../src/btl/ws/component.ts';
import { realFixture } from '../support/p2p-worlds.ts';
import { p2pSuite } from './p2p-suite.ts';

p2pSuite('ws', realFixture([wsComponent]));
