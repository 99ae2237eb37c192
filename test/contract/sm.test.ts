// The BTL contract over shared memory, both sides within this process: through the ring, and with reads of the other side's memory.

import { streamFixture } from '../support/stream-fixture.ts';
import { btlSuite } from './suite.ts';

btlSuite('sm', await streamFixture('sm', undefined, true));
