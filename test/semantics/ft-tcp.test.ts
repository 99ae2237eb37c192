// The suite of process failure over connections of TCP.
import { tcpComponent } from '../../src/btl/tcp/component.ts';
import { ftSuite } from './ft-suite.ts';

ftSuite(tcpComponent);
