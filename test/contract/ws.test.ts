// The BTL contract over the real ws transport, within this process.

import { streamFixture } from '../support/stream-fixture.ts';
import { btlSuite } from './suite.ts';

btlSuite('ws', await streamFixture('ws'));
