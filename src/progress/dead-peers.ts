// Dead peers whose rails are still there. The rails have owed completions to return; after that they would be looked at in every turn, and
// keep their memory, for as long as the job lasts. What stays of a dead peer is that it is dead, and its messages that wait for a receive.
import type { Bml } from '../bml/bml.ts';
import type { BmlPeer } from '../bml/peer.ts';
import type { BtlModule } from '../btl/btl.ts';
import type { MultirailError } from '../errors.ts';
import type { Pml } from '../pml/pml.ts';

export class DeadPeers {
  private readonly modules: readonly BtlModule[];
  private readonly bml: Bml;
  private readonly pml: Pml;
  private waiting: BmlPeer[] = [];

  constructor(modules: readonly BtlModule[], bml: Bml, pml: Pml) {
    this.modules = modules;
    this.bml = bml;
    this.pml = pml;
  }

  /** That peer is closed, and its rails are fenced: all that waits for it ends with the error. */
  add(peer: BmlPeer, error: MultirailError): void {
    this.pml.handlePeerFailed(peer.rank, error);
    this.waiting.push(peer);
  }

  /** In every turn: drops the rails of those of which no transport has anything to tell any more. */
  step(): void {
    if (this.waiting.length === 0) return;
    this.waiting = this.waiting.filter((peer) => {
      if (!this.modules.every((module) => module.forgetPeer(peer.rank))) return true;
      this.bml.dropRails(peer);
      this.pml.forgetFlows(peer.rank);
      // An error whose stack was never asked for keeps alive what the functions of that stack worked on.
      void this.pml.peer(peer.rank).failure?.stack;
      return false;
    });
  }
}
