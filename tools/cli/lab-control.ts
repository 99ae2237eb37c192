// The rails of a lab as things that the dashboard's buttons break and repair, and as events in its list, whether a button, a timeline or
// another shell breaks them.

import { MultirailError } from '../../src/errors.ts';
import type { RailControl } from '../dashboard/control.ts';
import type { ControlAction, ControlTarget, TargetState } from '../dashboard/messages.ts';
import type { JobModel } from '../dashboard/model.ts';
import { describeAction, type LabAction, type LabEvent } from '../lab/actions.ts';
import type { LabChanges, LabFault } from '../lab/faults.ts';
import { DEFAULT_HOLD_MS, nodeInterface } from '../lab/plan.ts';
import { showRate } from '../lab/rails.ts';
import type { LabView } from '../lab/view.ts';

/** A button has no field for it: as long that a rail is used again before it goes. */
const FLAP_PERIOD_MS = 4000;
/** Nor one for the node whose frames vanish, */
const MUTE_NODE = 0;
/** or for how many of them (a dirty connector), */
const LOSS_PERCENT = 5;
/** how late (a detour around the world), */
const DELAY_MS = 300;
/** how many out of order, */
const REORDER_PERCENT = 5;
/** or how many damaged. */
const FLIP_PERCENT = 5;

export interface ControlledLab {
  view: LabView;
  changes: LabChanges;
  apply(action: LabAction): Promise<unknown>;
}

/** The state that stands for several faults of a rail is the first of these that fits. */
const STATES: readonly { state: TargetState; fits: (fault: LabFault) => boolean }[] = [
  { state: 'pulled', fits: ({ kind }) => kind === 'pull' },
  { state: 'black-holed', fits: ({ kind }) => kind === 'blackhole' },
  { state: 'flapping', fits: ({ kind }) => kind === 'flap' },
  { state: 'one-way', fits: ({ kind }) => kind === 'oneway' },
  { state: 'impaired', fits: ({ kind }) => ['loss', 'delay', 'reorder', 'flip'].includes(kind) },
  { state: 'throttled', fits: ({ kind }) => kind === 'throttle' },
];

const ACTIONS: readonly ControlAction[] = ['pull', 'blackhole', 'oneway', 'loss', 'delay', 'reorder', 'flip', 'flap', 'restore'];

/** Their states say it all. */
const isPlain = (fault: LabFault): boolean => fault.kind === 'blackhole' || (fault.kind === 'pull' && fault.node === undefined);

export class LabControl implements RailControl {
  private readonly lab: ControlledLab;
  private readonly model: JobModel;
  /** Rails that a button of ours is at. */
  private readonly changing = new Map<number, number>();

  private constructor(lab: ControlledLab, model: JobModel) {
    this.lab = lab;
    this.model = model;
    lab.changes.listen((action) => this.tell(action));
  }

  static maker(lab: ControlledLab): (model: JobModel) => LabControl {
    return (model) => new LabControl(lab, model);
  }

  targets(): ControlTarget[] {
    const { view, changes } = this.lab;
    if (changes.isGone) return [];
    return view.rails.map(({ name, mbit }, rail): ControlTarget => {
      const faults = changes.faults.all()[rail];
      const state = STATES.find(({ fits }) => faults.some(fits))?.state ?? 'up';
      const isTold = faults.length === 0 || (faults.length === 1 && isPlain(faults[0]));
      return {
        id: idOf(rail),
        label: `lab rail ${name} (${showRate(mbit)}, ${nodeInterface(rail)})`,
        state: this.changing.has(rail) ? 'changing' : state,
        ...(isTold ? {} : { detail: faults.map((fault) => describeAction(fault, view.rails)).join('; ') }),
        actions: ACTIONS.filter((action) => action !== 'oneway' || view.namespaces.length > 1),
        rails: this.railsOver(rail),
      };
    });
  }

  async apply(id: string, action: ControlAction): Promise<void> {
    const rail = this.lab.view.rails.findIndex((_, i) => idOf(i) === id);
    if (rail < 0 || action === 'kill') throw new MultirailError('ERR_ARG', `"${id}": there is nothing of that name to ${action} now`);
    this.changing.set(rail, (this.changing.get(rail) ?? 0) + 1);
    try {
      await this.lab.apply(toLab(action, rail));
    } finally {
      const others = (this.changing.get(rail) ?? 0) - 1;
      if (others > 0) this.changing.set(rail, others);
      else this.changing.delete(rail);
    }
  }

  private tell(action: LabEvent): void {
    const { rails } = this.lab.view;
    this.model.event('lab-action', `in the lab: ${describeAction(action, rails)}`, {
      action: action.kind,
      ...(action.rail === undefined ? {} : { labRail: rails[action.rail].name }),
      ...('node' in action && action.node !== undefined ? { node: action.node } : {}),
    });
  }

  /** Rails of ranks whose key names the lab's rail as their interface. */
  private railsOver(labRail: number): { rank: number; peer: number; rail: number }[] {
    const name = new RegExp(`\\b${nodeInterface(labRail)}\\b`);
    const over = [...this.model.rails.values()].filter(({ view }) => name.test(view.key));
    return over.map(({ view: { rank, peer, rail } }) => ({ rank, peer, rail }));
  }
}

const idOf = (rail: number): string => `lab-${rail}`;

function toLab(action: Exclude<ControlAction, 'kill'>, rail: number): LabAction {
  switch (action) {
    case 'oneway':
      return { kind: 'oneway', rail, node: MUTE_NODE };
    case 'loss':
      return { kind: 'loss', rail, percent: LOSS_PERCENT };
    case 'delay':
      return { kind: 'delay', rail, delayMs: DELAY_MS, spreadMs: 0 };
    case 'reorder':
      return { kind: 'reorder', rail, percent: REORDER_PERCENT, holdMs: DEFAULT_HOLD_MS };
    case 'flip':
      return { kind: 'flip', rail, percent: FLIP_PERCENT };
    case 'flap':
      return { kind: 'flap', rail, periodMs: FLAP_PERIOD_MS, silent: false };
    default:
      return { kind: action, rail };
  }
}
