// The BTL contract over the real ws transport, within this process.
import { btlSuite } from './btl-suite.ts';
import { streamFixture } from './stream-fixture.ts';

btlSuite('ws', await streamFixture('ws'));
