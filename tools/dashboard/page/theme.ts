// Light and dark: as the system is set, or as the reader has chosen; this browser keeps the choice.
import { setText } from './dom.ts';

const CHOICES = ['auto', 'light', 'dark'] as const;
type Choice = (typeof CHOICES)[number];
const STORAGE_KEY = 'multirail-theme';

/** Where storage is forbidden the choice lasts as long as the page. */
function stored(): Choice {
  try {
    const found = localStorage.getItem(STORAGE_KEY);
    return CHOICES.find((choice) => choice === found) ?? 'auto';
  } catch {
    return 'auto';
  }
}

export function startTheme(button: HTMLButtonElement, onChange: () => void): void {
  let choice = stored();
  const show = () => {
    if (choice === 'auto') delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = choice;
    setText(button, `Theme: ${choice}`);
    onChange();
  };
  button.addEventListener('click', () => {
    choice = CHOICES[(CHOICES.indexOf(choice) + 1) % CHOICES.length];
    try {
      localStorage.setItem(STORAGE_KEY, choice);
    } catch {
      // Not kept, and still chosen.
    }
    show();
  });
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', onChange);
  show();
}

/** A colour of the stylesheet, as it is now. */
export const color = (name: string): string => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
