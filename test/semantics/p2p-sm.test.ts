// The point-to-point suite over shared memory: large messages through the ring, and read out of the sender's memory; then together with
// TCP, with the shared-memory rail broken again and again.
import { smComponent } from '../../src/btl/sm/component.ts';
import { tcpComponent } from '../../src/btl/tcp/component.ts';
import { realFixture } from '../support/p2p-worlds.ts';
import { p2pSuite } from './p2p-suite.ts';

const RING = { btl_sm_single_copy: 'never' };
const SINGLE_COPY = { btl_sm_single_copy: 'always', btl_sm_single_copy_min_bytes: '4k' };

p2pSuite('sm, through the ring', realFixture([smComponent], RING, false, 'required'));
p2pSuite('sm, single copy', realFixture([smComponent], SINGLE_COPY, false, 'required'));
// Rail 0 is sm, rail 1 is tcp: that one is left alone.
const SPARED = 1;
p2pSuite('sm and tcp behind the interposer', realFixture([smComponent, tcpComponent], RING, true, 'required', SPARED), {
  faultSeeds: ['sm 1'],
});
p2pSuite(
  'sm with single copy and tcp behind the interposer',
  realFixture([smComponent, tcpComponent], SINGLE_COPY, true, 'required', SPARED),
  {
    faultSeeds: ['sm 2'],
  },
);
