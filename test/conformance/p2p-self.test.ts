// The point-to-point suite in a world of one: a rank that talks to itself.
import { p2pSuite } from './p2p-suite.ts';
import { realFixture } from './p2p-worlds.ts';

p2pSuite('self', realFixture([]), { alone: true });
