// The BTL contract over the tcp transport with the native part, within this process.

import { streamFixture } from '../support/stream-fixture.ts';
import { btlSuite } from './suite.ts';

btlSuite('tcp, native', await streamFixture('tcp', undefined, true));
