// What can be broken and mended from the dashboard. `multirail lab` gives its cables; a job whose transports are behind the fault interposer
// (parameter btl_fault) gives its rails. Without either the page shows no buttons. May import: errors, launch (telemetry), this folder.
import { MultirailError } from '../errors.ts';
import type { FaultActionName, RailFault } from '../launch/telemetry.ts';
import type { ControlAction, ControlTarget } from './messages.ts';
import type { JobModel } from './model.ts';

/** Something that breaks and mends rails while a job runs. Every call may come at any time, also twice for the same thing. */
export interface RailControl {
  /** What there is, and how it stands now. Asked several times a second: it answers from memory. */
  targets(): readonly ControlTarget[];
  /** Cuts it so that its ends notice. Resolves when it is cut; rejects with a sentence when it cannot be. */
  pull(id: string): Promise<void>;
  /** Lets everything vanish in it, while nothing looks wrong. */
  blackhole(id: string): Promise<void>;
  restore(id: string): Promise<void>;
}

export function applyAction(control: RailControl, id: string, action: ControlAction): Promise<void> {
  return control[action](id);
}

/** Rails of a job that was started with the parameter btl_fault: both ranks of a pair are told, and break their ends. */
export class InterposerControl implements RailControl {
  private readonly model: JobModel;
  private readonly order: (rank: number, fault: RailFault) => void;
  private readonly states = new Map<string, ControlTarget['state']>();

  constructor(model: JobModel, order: (rank: number, fault: RailFault) => void) {
    this.model = model;
    this.order = order;
  }

  targets(): ControlTarget[] {
    const { ranks, rails } = this.model;
    const targets: ControlTarget[] = [];
    for (const { view } of rails.values()) {
      const { rank, peer, rail, transport } = view;
      const isObeyed = [rank, peer].every((one) => ranks[one].view.takesFaults && ranks[one].view.phase === 'JOINED');
      // Each rail is seen from both of its ends: it is one thing to pull.
      if (rank > peer || !isObeyed) continue;
      const id = idOf(rank, peer, rail);
      targets.push({
        id,
        label: `rail ${rail} (${transport}), ranks ${rank} and ${peer}`,
        state: this.states.get(id) ?? 'up',
        actions: ['pull', 'blackhole', 'restore'],
        rails: [
          { rank, peer, rail },
          { rank: peer, peer: rank, rail },
        ],
      });
    }
    return targets;
  }

  pull(id: string): Promise<void> {
    return this.apply(id, 'pull', 'pulled');
  }

  blackhole(id: string): Promise<void> {
    return this.apply(id, 'blackhole', 'black-holed');
  }

  restore(id: string): Promise<void> {
    return this.apply(id, 'restore', 'up');
  }

  private async apply(id: string, action: FaultActionName, state: ControlTarget['state']): Promise<void> {
    const target = this.targets().find((one) => one.id === id);
    if (target === undefined) throw new MultirailError('ERR_ARG', `there is no "${id}" to ${action} (now)`);
    for (const { rank, peer, rail } of target.rails) this.order(rank, { action, peer, rail });
    this.states.set(id, state);
  }
}

const idOf = (rank: number, peer: number, rail: number): string => `rail-${rank}-${peer}-${rail}`;
