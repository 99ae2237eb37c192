// The BTL contract over queue pairs of soft-RoCE, both sides within this process. Run inside the guest (vm.mjs).
import { btlSuite } from '../conformance/btl-suite.ts';
import { verbsFixture } from './verbs-fixture.ts';

btlSuite('verbs', verbsFixture());
