// The BTL contract over the real self transport, within this process.

import { streamFixture } from '../support/stream-fixture.ts';
import { btlSuite } from './suite.ts';

btlSuite('self', await streamFixture('self'));
