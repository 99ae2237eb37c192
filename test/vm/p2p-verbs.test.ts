// The point-to-point suite over queue pairs of soft-RoCE, alone and beside TCP. Run inside the guest (vm.mjs).
import { tcpComponent } from '../../src/btl/tcp/component.ts';
import { p2pSuite } from '../conformance/p2p-suite.ts';
import { realFixture } from '../conformance/p2p-worlds.ts';
import { unavailable, verbsOnDevices } from './verbs-fixture.ts';

const verbs = verbsOnDevices(1);
const where = unavailable === undefined ? {} : { unavailable };
p2pSuite('verbs', { ...realFixture([verbs], {}, false, 'required'), ...where });
// Rail 0 is verbs, rail 1 is tcp: that one is left alone.
const SPARED = 1;
p2pSuite(
  'verbs and tcp behind the interposer',
  { ...realFixture([verbs, tcpComponent], {}, true, 'required', SPARED), ...where },
  {
    faultSeeds: ['verbs 1'],
  },
);
