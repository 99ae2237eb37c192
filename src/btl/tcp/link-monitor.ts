// What the kernel says about this host's links: carrier and addresses, by netlink as they change, and read directly as a cross-check. It
// costs nothing while nothing changes: its descriptor is read only when it is ready.
import type { NativeBinding, NetlinkEvent } from '../../native/binding.ts';
import type { Poller, PollTarget } from '../../native/poller.ts';

/** `up`: administratively up and with carrier. */
export type LinkChange = { kind: 'link'; name: string; up: boolean } | { kind: 'address'; name: string; address: string; removed: boolean };

/** What it needs of the poller. */
export type LinkPoller = Pick<Poller, 'add' | 'remove'> & {
  native: Pick<NativeBinding, 'netlinkOpen' | 'netlinkRead' | 'links' | 'close'>;
};

export class LinkMonitor implements PollTarget {
  private readonly poller: LinkPoller;
  private readonly onChange: () => void;
  private fd: number;
  private ready = false;
  /** What is seen first is no change. */
  private hasLooked = false;
  private readonly names = new Map<number, string>();
  /** By name: up, with carrier. */
  private readonly up = new Map<string, boolean>();

  /** Throws when the kernel refuses. `onChange` asks for a take() soon. */
  constructor(poller: LinkPoller, onChange: () => void) {
    this.poller = poller;
    this.onChange = onChange;
    // First subscribe, then look, so that nothing is missed in between.
    this.fd = poller.native.netlinkOpen();
    this.compare();
    this.hasLooked = true;
    poller.add(this.fd, this);
  }

  onReady(): void {
    this.ready = true;
    this.onChange();
  }

  /** Something may be there to be taken. */
  get pending(): boolean {
    return this.ready;
  }

  /** Whether the interface has its carrier, as far as is known; true for one that is not known. */
  hasCarrier(name: string): boolean {
    return this.up.get(name) ?? true;
  }

  /** What has changed since, in order. */
  take(): LinkChange[] {
    if (!this.ready || this.fd < 0) return [];
    this.ready = false;
    const changes: LinkChange[] = [];
    for (;;) {
      const events = this.poller.native.netlinkRead(this.fd);
      if (events.length === 0) return changes;
      for (const event of events) changes.push(...this.note(event));
    }
  }

  /** Reads all links directly: events may be late, or lost. */
  compare(): LinkChange[] {
    if (this.fd < 0) return [];
    const changes: LinkChange[] = [];
    const gone = new Set(this.up.keys());
    for (const link of this.poller.native.links()) {
      gone.delete(link.name);
      changes.push(...this.noteLink(link.index, link.name, link.up && link.carrier));
    }
    for (const name of gone) changes.push(...this.noteLink(-1, name, false));
    return changes;
  }

  close(): void {
    if (this.fd < 0) return;
    this.poller.remove(this.fd);
    this.poller.native.close(this.fd);
    this.fd = -1;
  }

  private note(event: NetlinkEvent): LinkChange[] {
    switch (event.type) {
      case 'overrun':
        return this.compare();
      case 'link':
        return this.noteLink(event.index, event.name, event.up && event.carrier && !event.removed);
      case 'address': {
        const name = this.names.get(event.index);
        return name === undefined ? [] : [{ kind: 'address', name, address: event.address, removed: event.removed }];
      }
    }
  }

  private noteLink(index: number, name: string, up: boolean): LinkChange[] {
    if (index >= 0) this.names.set(index, name);
    const before = this.up.get(name);
    this.up.set(name, up);
    return (this.hasLooked ? (before ?? false) : (before ?? up)) === up ? [] : [{ kind: 'link', name, up }];
  }
}
