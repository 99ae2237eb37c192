// The BTL contract over the real tcp transport, within this process.
import { btlSuite } from './btl-suite.ts';
import { streamFixture } from './stream-fixture.ts';

btlSuite('tcp', await streamFixture('tcp'));
