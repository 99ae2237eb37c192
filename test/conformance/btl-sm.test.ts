// The BTL contract over shared memory, both sides within this process: through the ring, and with reads of the other's memory.
import { btlSuite } from './btl-suite.ts';
import { streamFixture } from './stream-fixture.ts';

btlSuite('sm', await streamFixture('sm', undefined, true));
