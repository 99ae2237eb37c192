// What communicators need of the message layer under them: the PML, or, in a process that is one of several replicas of a rank, what stands in
// its place (src/ft/replica).
import type { Pml } from './pml.ts';
import type { PmlPeer } from './records.ts';

export interface MessageLayer
  extends Pick<
    Pml,
    | 'isend'
    | 'sendEager'
    | 'irecv'
    | 'irecvInBackground'
    | 'cancel'
    | 'giveUp'
    | 'iprobe'
    | 'improbe'
    | 'imrecv'
    | 'endPosted'
    | 'endPostedToAny'
    | 'revokeContext'
    | 'freeContext'
    | 'releaseContext'
    | 'isContextQuiet'
    | 'admits'
    | 'onUnexpected'
    | 'comparesBytes'
  > {
  peer(rank: number): Pick<PmlPeer, 'ended'>;
}
