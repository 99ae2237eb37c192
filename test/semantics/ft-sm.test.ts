// The suite of process failure over shared memory, where collectives go through memory that the ranks share until a member dies or the
// communicator is revoked.
import { smComponent } from '../../src/btl/sm/component.ts';
import { loadNative } from '../../src/native/load.ts';
import { ftSuite } from './ft-suite.ts';

ftSuite(smComponent, loadNative().reason);
