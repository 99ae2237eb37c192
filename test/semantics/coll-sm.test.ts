// The suite of collectives over shared memory; then together with TCP, with the shared-memory rail broken again and again.
import { smComponent } from '../../src/btl/sm/component.ts';
import { tcpComponent } from '../../src/btl/tcp/component.ts';
import { realFixture } from '../support/p2p-worlds.ts';
import { collSuite } from './coll-suite.ts';

collSuite('sm', realFixture([smComponent], { btl_sm_single_copy: 'always', btl_sm_single_copy_min_bytes: '4k' }, false, 'required'));
// Rail 0 is sm, rail 1 is tcp: that one is left alone.
const SPARED = 1;
collSuite(
  'sm and tcp behind the interposer',
  realFixture([smComponent, tcpComponent], { btl_sm_single_copy: 'never' }, true, 'required', SPARED),
  { faultSeeds: ['coll sm 1'] },
);
