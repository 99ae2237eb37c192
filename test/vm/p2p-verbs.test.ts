// The point-to-point suite over queue pairs of soft-RoCE, alone and together with TCP. It runs inside the guest (vm.mjs).
import { tcpComponent } from '../../src/btl/tcp/component.ts';
import { p2pSuite } from '../semantics/p2p-suite.ts';
import { realFixture } from '../support/p2p-worlds.ts';
import { unavailable, verbsOnDevices } from './verbs-fixture.ts';

const verbs = verbsOnDevices(1);
const where = unavailable === undefined ? {} : { unavailable };
const isFull = process.env.MULTIRAIL_VM_FULL === '1';
/** Eight ranks of this one process send 11,000 messages: minutes in an emulated guest, and twice the memory of all other cases. */
const leaveOut: Record<string, string> = isFull
  ? {}
  : { '12 sendflood: eight ranks, many short messages': 'too long for an emulated guest; MULTIRAIL_VM_FULL=1 runs it' };
/** With MULTIRAIL_VM_FULL=1 the cases run again while rails break, and take as long as they need. */
const faultSeeds = isFull ? ['verbs 1'] : [];
const limits = isFull ? { caseLimitMs: 400_000 } : {};
p2pSuite('verbs', { ...realFixture([verbs], {}, false, 'required'), ...where }, { leaveOut, sampleCalm: true, ...limits });
// Rail 0 is verbs, rail 1 is tcp: that one is left alone.
const SPARED = 1;
p2pSuite(
  'verbs and tcp behind the interposer',
  { ...realFixture([verbs, tcpComponent], {}, true, 'required', SPARED), ...where },
  { leaveOut, faultSeeds, sampleCalm: true, ...limits },
);
