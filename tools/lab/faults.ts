// What was done to each rail of a lab since it was last as at the start, and the one place that does it: one action after the other, each
// told to every listener.
import { applyAction, type LabAction, type LabEvent } from './actions.ts';
import type { Lab } from './lab.ts';

/** What lasts until it is restored. What was killed is not a state of the lab: nothing brings it back. */
export type LabFault = Exclude<LabEvent, { kind: 'restore' | 'kill' }>;

/** Whether what is done now takes the place of what was done before: the same thing, another rate, another loss of the same frames. */
function replaces(now: LabFault, before: LabFault): boolean {
  switch (now.kind) {
    case 'throttle':
    case 'delay':
    case 'reorder':
      return before.kind === now.kind;
    case 'loss':
    case 'flip':
      return before.kind === now.kind && (now.node === undefined || now.node === before.node);
    case 'forwarder-lost':
      return ['delay', 'reorder', 'flip', now.kind].includes(before.kind);
    default:
      return JSON.stringify(now) === JSON.stringify(before);
  }
}

/** Orders of nothing, which only end what was before. */
function isNothing(action: LabFault): boolean {
  if (action.kind === 'delay') return action.delayMs === 0 && action.spreadMs === 0;
  return (action.kind === 'loss' || action.kind === 'reorder' || action.kind === 'flip') && action.percent === 0;
}

export class FaultList {
  private readonly lists: LabFault[][];

  constructor(lists: readonly (readonly LabFault[])[]) {
    this.lists = lists.map((list) => [...list]);
  }

  /** By rail, oldest first. */
  all(): readonly (readonly LabFault[])[] {
    return this.lists;
  }

  note(action: LabEvent): void {
    if (action.kind === 'restore') {
      this.lists.forEach((list, rail) => {
        if (action.rail === undefined || action.rail === rail) list.length = 0;
      });
      return;
    }
    if (action.kind === 'kill') return;
    if (action.kind === 'halt') {
      for (const list of this.lists) this.add(list, action);
      return;
    }
    this.add(this.lists[action.rail], action);
  }

  private add(list: LabFault[], action: LabFault): void {
    const kept = list.filter((fault) => !replaces(action, fault));
    // One node loses nothing, and the others still may: that is worth a word.
    const isNone = isNothing(action) && !kept.some(({ kind }) => kind === action.kind);
    list.splice(0, list.length, ...kept, ...(isNone ? [] : [action]));
  }
}

/** What is done to a lab, as those see it who only look: in this process or in its keeper's. */
export interface LabChanges {
  readonly faults: FaultList;
  /** The lab is no more. */
  readonly isGone: boolean;
  /** Calls it after each action, when the kernel has done it, and after each mishap. Returns the function that ends this. */
  listen(listener: (event: LabEvent) => void): () => void;
}

/** Does it, in the process that holds the lab. */
export class LabDriver implements LabChanges {
  readonly faults: FaultList;
  readonly isGone = false;
  private readonly lab: Lab;
  private readonly listeners = new Set<(event: LabEvent) => void>();
  /** The kernel's answer to one action may be what the next builds on. */
  private last: Promise<unknown> = Promise.resolve();

  constructor(lab: Lab) {
    this.lab = lab;
    this.faults = new FaultList(lab.rails.map(() => []));
    lab.onForwarderLost = (rail, why) => void this.inTurn(() => this.tell({ kind: 'forwarder-lost', rail, why }));
  }

  /** Resolves when the kernel has done it. */
  apply(action: LabAction): Promise<void> {
    return this.inTurn(async () => {
      await applyAction(this.lab, action);
      this.tell(action);
    });
  }

  private tell(event: LabEvent): void {
    this.faults.note(event);
    for (const listener of [...this.listeners]) listener(event);
  }

  /** After everything that was asked for before, and before everything that is asked for after. */
  inTurn<T>(work: () => T | Promise<T>): Promise<T> {
    const turn = this.last.then(work);
    this.last = turn.catch(() => undefined);
    return turn;
  }

  listen(listener: (event: LabEvent) => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }
}
