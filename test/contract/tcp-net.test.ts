// The BTL contract over the tcp transport without the native part (node:net), within this process.

import { streamFixture } from '../support/stream-fixture.ts';
import { btlSuite } from './suite.ts';

btlSuite('tcp, node:net', await streamFixture('tcp'));
