// The transports that exist, and which of them a process uses (parameter `btl`). A new one is one line in COMPONENTS, or a call of
// registerComponent() before the runtime starts.
import { MultirailError } from '../errors.ts';
import type { BtlComponent, Params } from './btl.ts';
import { selfComponent } from './self/component.ts';
import { smComponent } from './sm/component.ts';
import { tcpComponent } from './tcp/component.ts';
import { verbsComponent } from './verbs/component.ts';
import { wsComponent } from './ws/component.ts';

const COMPONENTS: BtlComponent[] = [selfComponent, smComponent, verbsComponent, tcpComponent, wsComponent];

/** All known transports, in the order in which they are opened. */
export function knownComponents(): readonly BtlComponent[] {
  return COMPONENTS;
}

/** Adds a transport; one of the same name is replaced. Returns a function that takes it back. */
export function registerComponent(component: BtlComponent): () => void {
  const index = COMPONENTS.findIndex((known) => known.name === component.name);
  const previous = index === -1 ? undefined : COMPONENTS[index];
  if (index === -1) COMPONENTS.push(component);
  else COMPONENTS[index] = component;
  return () => {
    const now = COMPONENTS.indexOf(component);
    if (now === -1) return;
    if (previous === undefined) COMPONENTS.splice(now, 1);
    else COMPONENTS[now] = previous;
  };
}

export interface Selection {
  components: BtlComponent[];
  /** Asked for, or not excluded, and unable to work here: name and reason. */
  unavailable: { name: string; reason: string }[];
}

/**
 * The transports that the parameter `btl` names: a list (`self,tcp`), or all but some (`^ws`). A name that does not exist
 * is ERR_CONFIG; one that cannot work here is ERR_INIT only when nothing else is left.
 */
export function selectComponents(params: Params): Selection {
  const entries = params.list('btl');
  const known = COMPONENTS.map((component) => component.name);
  const excluding = entries.some((entry) => entry.startsWith('^'));
  // `^ws,sm` excludes both: the sign stands for the whole list, as in Open MPI.
  const names = entries.map((entry, i) => (excluding && i === 0 ? entry.slice(1) : entry));
  if (names.some((name) => name.startsWith('^')) || (excluding && !entries[0].startsWith('^'))) {
    throw new MultirailError(
      'ERR_CONFIG',
      `btl = "${entries.join(',')}": expected names of transports to use, or, with ^ in front of the first one, of transports to leave out`,
    );
  }
  for (const name of names) {
    if (!known.includes(name))
      throw new MultirailError('ERR_CONFIG', `btl: unknown transport "${name}"; expected some of ${known.join(', ')}`);
  }
  const wanted = COMPONENTS.filter((component) => names.length === 0 || names.includes(component.name) !== excluding);
  const selection: Selection = { components: [], unavailable: [] };
  for (const component of wanted) {
    const reason = component.unavailable(params);
    if (reason === undefined) selection.components.push(component);
    else selection.unavailable.push({ name: component.name, reason });
  }
  if (selection.components.length === 0) {
    const reasons = selection.unavailable.map(({ name, reason }) => `${name}: ${reason}`).join('; ');
    throw new MultirailError('ERR_INIT', `btl = "${entries.join(',')}" leaves no transport${reasons === '' ? '' : ` (${reasons})`}`);
  }
  return selection;
}
