// The BTL contract over the tcp transport without the native part (node:net), within this process.
import { btlSuite } from './btl-suite.ts';
import { streamFixture } from './stream-fixture.ts';

btlSuite('tcp, node:net', await streamFixture('tcp'));
