// Buttons that break and repair: one row for each thing that can be pulled.
import type { ControlAction, ControlTarget } from '../messages.ts';
import { button, html } from './dom.ts';
import { Rows, tableHead } from './lists.ts';

const WORDS: Readonly<Record<ControlAction, string>> = {
  pull: 'Pull',
  blackhole: 'Black-hole',
  oneway: 'One-way',
  loss: 'Lose some',
  delay: 'Delay',
  reorder: 'Reorder',
  flip: 'Flip bits',
  flap: 'Flap',
  restore: 'Restore',
  kill: 'Kill',
};

/** What makes sense now: what carries can be broken, what is not as at the start can be mended. */
function isSensible({ state, detail }: ControlTarget, action: ControlAction): boolean {
  if (state === 'changing') return false;
  if (action === 'kill') return state === 'alive';
  return action === 'restore' ? state !== 'up' || detail !== undefined : state === 'up' || state === 'throttled' || state === 'impaired';
}

export class Controls {
  private readonly section: HTMLElement;
  private readonly rows: Rows;
  private readonly shown = new Map<string, { text: string; row: HTMLElement }>();
  private readonly error: HTMLElement;
  private readonly order: (id: string, action: ControlAction) => Promise<void>;

  constructor(section: HTMLElement, root: HTMLElement, error: HTMLElement, order: (id: string, action: ControlAction) => Promise<void>) {
    this.section = section;
    this.rows = new Rows(root);
    this.error = error;
    this.order = order;
  }

  update(targets: readonly ControlTarget[]): void {
    this.section.hidden = targets.length === 0;
    this.rows.show(
      targets.map(({ id }) => id),
      () => {
        this.shown.clear();
        const rows = targets.map((target) => this.remember(target));
        return [html('table', {}, tableHead(['What', 'State', 'Break or restore']), html('tbody', {}, ...rows))];
      },
    );
    // Row by row: a button that is being pressed must not be exchanged because another row has changed.
    for (const target of targets) {
      const shown = this.shown.get(target.id);
      if (shown === undefined || shown.text === JSON.stringify(target)) continue;
      const hadFocus = shown.row.contains(document.activeElement);
      const row = this.remember(target);
      shown.row.replaceWith(row);
      if (hadFocus) row.querySelector<HTMLElement>('button:not([disabled])')?.focus();
    }
  }

  private remember(target: ControlTarget): HTMLElement {
    const row = this.row(target);
    this.shown.set(target.id, { text: JSON.stringify(target), row });
    return row;
  }

  private row(target: ControlTarget): HTMLElement {
    const { id, label, state, detail } = target;
    const buttons = target.actions.map((action) =>
      button(WORDS[action], () => this.press(id, action), {
        'data-action': action,
        disabled: !isSensible(target, action),
        'aria-label': `${WORDS[action]} ${label}`,
      }),
    );
    return html(
      'tr',
      { 'data-target': id },
      html('th', { scope: 'row' }, label),
      html(
        'td',
        { class: state === 'up' || state === 'alive' ? 'state-up' : 'state-down' },
        detail === undefined ? state : `${state}: ${detail}`,
      ),
      html('td', {}, ...buttons),
    );
  }

  private press(id: string, action: ControlAction): void {
    this.error.textContent = '';
    this.order(id, action).catch((error: Error) => {
      this.error.textContent = `That did not work: ${error.message}`;
    });
  }
}
