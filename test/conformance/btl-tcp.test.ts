// The BTL contract over the tcp transport with the native part, within this process.
import { btlSuite } from './btl-suite.ts';
import { streamFixture } from './stream-fixture.ts';

btlSuite('tcp, native', await streamFixture('tcp', undefined, true));
