// The suite of collectives in a world of one.

import { realFixture } from '../support/p2p-worlds.ts';
import { collSuite } from './coll-suite.ts';

collSuite('self', realFixture([]), { alone: true, everyAlgorithm: true });
