// When rails are pulled and restored during a run: the options --pull RAIL@TIME and --restore RAIL@TIME, and the code that carries them out
// through the fault interposer around every transport except self. Both ranks of a run do this, at moments after a common start.
import { type FaultControl, parseRailSelector, wrapFault } from '../../src/btl/interpose/fault.ts';
import { LOSS_EXPECTED, parseLoss, parseRate, RATE_EXPECTED, type RailSelector } from '../../src/btl/interpose/fault-plan.ts';
import { knownComponents, registerComponent } from '../../src/btl/registry.ts';
import { MultirailError } from '../../src/errors.ts';

/** How a rail goes: dead in silence, dead with an error, or bad: `lossy:PERCENT`, `slow:BYTES_PER_SECOND`. */
export type PullMode = 'silent' | 'error' | `lossy:${string}` | `slow:${string}`;
export const PULL_MODES_EXPECTED = `silent, error, lossy:${LOSS_EXPECTED}, or slow:RATE, ${RATE_EXPECTED}`;

/** Undefined when the text is not a mode. */
export function parsePullMode(text: string): PullMode | undefined {
  const [name, detail] = [text.slice(0, text.indexOf(':')), text.slice(text.indexOf(':') + 1)];
  const isMode =
    text === 'silent' ||
    text === 'error' ||
    (name === 'lossy' && parseLoss(detail) !== undefined) ||
    (name === 'slow' && parseRate(detail) !== undefined);
  return isMode ? (text as PullMode) : undefined;
}

/** The rail goes on carrying, badly. */
export const isBadMode = (mode: PullMode): boolean => mode !== 'silent' && mode !== 'error';

/** What a rail is by that mode, in one word. */
export const pulledWord = (mode: PullMode): string => (isBadMode(mode) ? mode.slice(0, mode.indexOf(':')) : 'pulled');

/** What is done to a rail by that mode. */
export const pulledText = (mode: PullMode): string => (isBadMode(mode) ? `made ${mode.replace(':', ' ')}` : `pulled (${mode})`);

export interface RailAction {
  kind: 'pull' | 'restore';
  /** Index of the rail in the pair's table; undefined = all rails. */
  rail: number | undefined;
  atMs: number;
}

const DURATION_MS_MAX = 24 * 3600 * 1000;

function parseOne(kind: RailAction['kind'], text: string): RailAction {
  const expected = `--${kind} "${text}": expected RAIL@TIME, such as 1@2s, 0@1500ms or *@2s`;
  const [rail, time, more] = text.split('@');
  const match = /^(\d+(?:\.\d+)?)(ms|s)$/.exec(time ?? '');
  if (match === null || more !== undefined || !/^(\d{1,4}|\*)$/.test(rail)) throw new MultirailError('ERR_ARG', expected);
  const atMs = Number(match[1]) * (match[2] === 's' ? 1000 : 1);
  if (atMs > DURATION_MS_MAX) throw new MultirailError('ERR_ARG', `${expected}, within a day`);
  return { kind, rail: parseRailSelector(rail).rail, atMs };
}

/** All actions in order of time. Refuses what cannot be meant: a restore of a rail that is not pulled, an action after the end. */
export function parseRailActions(pulls: readonly string[], restores: readonly string[], durationMs: number): RailAction[] {
  const split = (texts: readonly string[]) => texts.flatMap((text) => text.split(',')).map((text) => text.trim());
  const actions = [...split(pulls).map((text) => parseOne('pull', text)), ...split(restores).map((text) => parseOne('restore', text))].sort(
    (a, b) => a.atMs - b.atMs,
  );
  const pulled = new Set<string>();
  for (const action of actions) {
    const name = railName(action.rail);
    const when = `${action.kind} of ${name} at ${action.atMs} ms`;
    if (action.atMs >= durationMs) throw new MultirailError('ERR_ARG', `${when}: the run is over after ${durationMs} ms`);
    if (action.kind === 'pull') {
      if (pulled.has(name)) throw new MultirailError('ERR_ARG', `${when}: it is pulled already`);
      pulled.add(name);
    } else if (action.rail === undefined) {
      if (pulled.size === 0) throw new MultirailError('ERR_ARG', `${when}: no rail is pulled`);
      pulled.clear();
    } else if (!pulled.delete(name) && !pulled.has(railName(undefined))) {
      throw new MultirailError('ERR_ARG', `${when}: it is not pulled`);
    }
  }
  return actions;
}

export const railName = (rail: number | undefined): string => (rail === undefined ? 'all rails' : `rail ${rail}`);

/** Which rails of `count` are pulled once all actions up to that moment are done. */
export function pulledAt(actions: readonly RailAction[], count: number, atMs: number): boolean[] {
  const pulled = new Array<boolean>(count).fill(false);
  for (const action of actions) {
    if (action.atMs > atMs) break;
    for (let rail = 0; rail < count; rail++) if (action.rail === undefined || action.rail === rail) pulled[rail] = action.kind === 'pull';
  }
  return pulled;
}

/** The actions must mean rails that exist, and leave one at the end: else the last messages could never arrive. */
export function checkActions(actions: readonly RailAction[], count: number): void {
  for (const { rail, kind } of actions) {
    if (rail !== undefined && rail >= count) {
      const there = count === 1 ? 'there is only rail 0' : `there are rails 0 to ${count - 1}`;
      throw new MultirailError('ERR_ARG', `${kind} of rail ${rail}: ${there} (more by --mca btl_tcp_links N or --mca btl self,tcp,ws)`);
    }
  }
  if (actions.length > 0 && pulledAt(actions, count, Number.POSITIVE_INFINITY).every((isPulled) => isPulled)) {
    throw new MultirailError('ERR_ARG', `every one of the ${count} rails is pulled at the end: restore one, or use more rails`);
  }
}

/** How much later the sender's end of a rail goes silent than the receiver's. */
export const SENDER_LAG_MS = 30;

/**
 * How one end dies in silence. Two processes never act at the very same moment, and an end that throws away what still comes ends
 * the connection below it, which the other end would hear as a loud close. So the receiver first stops sending only; a little
 * later, when nothing of it is under way any more, the sender stops sending and hearing: what it sent last has arrived, and it
 * never learns.
 */
const SILENT_END = { receiver: 'silent-out', sender: 'silent' } as const;
export type RailEnd = keyof typeof SILENT_END;

function goBad(control: FaultControl, which: RailSelector, mode: PullMode): void {
  const detail = mode.slice(mode.indexOf(':') + 1);
  const loss = mode.startsWith('lossy:') ? parseLoss(detail) : undefined;
  const rate = mode.startsWith('slow:') ? parseRate(detail) : undefined;
  if (loss !== undefined) control.lossy(which, loss.lossPer10k, loss.seed);
  else if (rate !== undefined) control.slow(which, rate);
  else throw new MultirailError('ERR_ARG', `pull mode "${mode}": expected ${PULL_MODES_EXPECTED}`);
}

export interface RailHand {
  apply(action: RailAction, peer: number, mode: PullMode, end: RailEnd): void;
  /** Transports that are opened from now on are left alone. */
  release(): void;
}

/** From now on every transport is opened behind the fault interposer. */
export function takeRailsInHand(): RailHand {
  const controls: FaultControl[] = [];
  const undo = knownComponents()
    .filter((component) => component.name !== 'self')
    .map((component) =>
      registerComponent({
        name: component.name,
        description: component.description,
        unavailable: (params) => component.unavailable(params),
        create: (context) => {
          const module = wrapFault((inner) => component.create(inner), context, '');
          controls.push(module.control);
          return module;
        },
      }),
    );
  return {
    apply: ({ kind, rail }, peer, mode, end) => {
      const which = rail === undefined ? { peer } : { rail, peer };
      // Rails are numbered over all transports: the control that does not have this one does nothing.
      for (const control of controls) {
        if (kind === 'restore') control.restore(which);
        else if (mode === 'silent') control.pull(which, SILENT_END[end]);
        else if (mode === 'error') control.pull(which, mode);
        else goBad(control, which, mode);
      }
    },
    release: () => {
      for (const back of undo) back();
    },
  };
}
