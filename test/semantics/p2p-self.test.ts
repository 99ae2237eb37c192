// The point-to-point suite in a world of one: a rank that talks to itself.

import { realFixture } from '../support/p2p-worlds.ts';
import { p2pSuite } from './p2p-suite.ts';

p2pSuite('self', realFixture([]), { alone: true });
