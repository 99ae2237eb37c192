// The BTL contract over the real self transport, within this process.
import { btlSuite } from './btl-suite.ts';
import { streamFixture } from './stream-fixture.ts';

btlSuite('self', await streamFixture('self'));
