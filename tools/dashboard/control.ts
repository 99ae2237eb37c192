// What can be broken and repaired from the dashboard: rails, and processes of a job that survives their death. `multirail lab` provides its cables; a job whose transports are behind the fault
// interposer (parameter btl_fault) provides its rails. Without either the page shows no buttons.
import { MultirailError } from '../../src/errors.ts';
import type { FaultActionName, RailFault } from '../../src/launch/oob/telemetry.ts';
import type { ControlAction, ControlTarget, TargetState } from './messages.ts';
import type { JobModel } from './model.ts';

/** Something that breaks and mends rails, or kills processes, while a job runs. */
export interface RailControl {
  /** What there is, how it stands now, and which actions it takes. Asked several times a second: it answers from memory. */
  targets(): readonly ControlTarget[];
  /** Resolves when it is done; rejects with a sentence when it cannot be. May be called at any time, also twice for the same thing. */
  apply(id: string, action: ControlAction): Promise<void>;
}

/** What a fault interposer can do, and how the rail stands then. */
const STATE_AFTER: Readonly<Partial<Record<ControlAction, TargetState>> & Record<FaultActionName, TargetState>> = {
  pull: 'pulled',
  blackhole: 'black-holed',
  restore: 'up',
};

/** Rails of a job that was started with the parameter btl_fault: both ranks of a pair are told, and break their ends. */
export class InterposerControl implements RailControl {
  private readonly model: JobModel;
  private readonly order: (rank: number, fault: RailFault) => void;
  private readonly states = new Map<string, TargetState>();

  constructor(model: JobModel, order: (rank: number, fault: RailFault) => void) {
    this.model = model;
    this.order = order;
  }

  targets(): ControlTarget[] {
    const { ranks, rails } = this.model;
    const targets = new Map<string, ControlTarget>();
    for (const { view } of rails.values()) {
      const { rail, transport } = view;
      const [low, high] = [view.rank, view.peer].sort((a, b) => a - b);
      const id = idOf(low, high, rail);
      const isObeyed = [low, high].every((one) => ranks[one].view.takesFaults && ranks[one].view.phase === 'JOINED');
      // Each rail is seen from both of its ends, either of which may be the first to tell of it, and it is one thing to pull.
      if (targets.has(id) || !isObeyed) continue;
      targets.set(id, {
        id,
        label: `rail ${rail} (${transport}), ranks ${low} and ${high}`,
        state: this.states.get(id) ?? 'up',
        actions: Object.keys(STATE_AFTER) as FaultActionName[],
        rails: [
          { rank: low, peer: high, rail },
          { rank: high, peer: low, rail },
        ],
      });
    }
    return [...targets.values()];
  }

  async apply(id: string, action: ControlAction): Promise<void> {
    const target = this.targets().find((one) => one.id === id);
    const state = STATE_AFTER[action];
    if (target === undefined || state === undefined) throw nothingToDo(id, action);
    for (const { rank, peer, rail } of target.rails) this.order(rank, { action, peer, rail });
    this.states.set(id, state);
  }
}

/** Processes of a job that goes on without them. */
export class ProcessControl implements RailControl {
  private readonly model: JobModel;
  private readonly kill: (rank: number) => void;

  constructor(model: JobModel, kill: (rank: number) => void) {
    this.model = model;
    this.kill = kill;
  }

  targets(): ControlTarget[] {
    const { job, ranks } = this.model;
    if (!job.survivesFailures) return [];
    return ranks.flatMap(({ view }): ControlTarget[] => {
      const { rank, place, phase, died } = view;
      if (phase !== 'JOINED' && !died) return [];
      const what = place === null ? ', which stands by' : place === rank ? '' : `, now rank ${place}`;
      return [
        {
          id: processId(rank),
          label: `process ${rank}${what}`,
          state: died ? 'dead' : 'alive',
          actions: ['kill'],
          rails: [],
        },
      ];
    });
  }

  async apply(id: string, action: ControlAction): Promise<void> {
    const living = this.model.ranks.find(({ view }) => processId(view.rank) === id && view.phase === 'JOINED');
    if (living === undefined || action !== 'kill') throw nothingToDo(id, action);
    this.kill(living.view.rank);
  }
}

/** Several controls as one. */
export class JoinedControl implements RailControl {
  private readonly controls: readonly RailControl[];

  constructor(controls: readonly RailControl[]) {
    this.controls = controls;
  }

  targets(): ControlTarget[] {
    return this.controls.flatMap((control) => control.targets());
  }

  async apply(id: string, action: ControlAction): Promise<void> {
    const control = this.controls.find((one) => one.targets().some((target) => target.id === id));
    if (control === undefined) throw nothingToDo(id, action);
    await control.apply(id, action);
  }
}

const nothingToDo = (id: string, action: ControlAction): MultirailError =>
  new MultirailError('ERR_ARG', `"${id}": there is nothing of that name to ${action} now`);
const processId = (rank: number): string => `process-${rank}`;
const idOf = (rank: number, peer: number, rail: number): string => `rail-${rank}-${peer}-${rail}`;
