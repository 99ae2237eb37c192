// An epoch whose segment was not what it must be: it ends with the first poll.
import { type Link, type LinkEnd, type LinkOwner, tellEnd } from '../base/link.ts';
import { DOWN, type RailReason, type SendResult } from '../btl.ts';
import type { UnixStream } from './unix-stream.ts';

export class BrokenLink implements Link {
  readonly epoch: number;
  readonly stream: UnixStream;
  readonly outstandingBytes = 0;
  readonly receivedByPeerBytes = 0;
  readonly end: LinkEnd;
  private readonly owner: LinkOwner;

  constructor(owner: LinkOwner, epoch: number, stream: UnixStream, reason: RailReason) {
    this.owner = owner;
    this.epoch = epoch;
    this.stream = stream;
    this.end = { clean: false, reason };
    stream.destroy();
  }

  send(): SendResult {
    return DOWN;
  }
  flush(): void {}
  letGo(): boolean {
    return true;
  }
  probe(): void {}
  bye(): void {}
  revokeSink(): boolean {
    return false;
  }
  cut(): void {}
  endsWell(): boolean {
    return false;
  }
  isQuiet(): boolean {
    return false;
  }
  poll(): number {
    return 0;
  }
  takeWritable(): boolean {
    return false;
  }
  writableNow(): boolean {
    return false;
  }
  nextDeadline(): number {
    return 0;
  }
  close(): number {
    return tellEnd(this.owner, this.epoch, this.end, null);
  }
}
