// The suite of collectives in a world of one.
import { collSuite } from './coll-suite.ts';
import { realFixture } from './p2p-worlds.ts';

collSuite('self', realFixture([]), { alone: true, everyAlgorithm: true });
