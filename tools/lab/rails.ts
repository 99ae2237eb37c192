// Rails of a lab as people write them: `1gbit,100mbit`, `fast=10gbit,slow=1gbit`, and the two rates that have a name.
import { MultirailError } from '../../src/errors.ts';
import { MAX_RAILS } from './plan.ts';

export interface NamedRail {
  name: string;
  /** Rate of each port; Infinity: not shaped. */
  mbit: number;
}

/** Names that say their rate: the two networks of a cluster. */
const PRESETS: Readonly<Record<string, number>> = { fast: 10_000, slow: 1000 };
const UNSHAPED = 'unshaped';
const UNITS: Readonly<Record<string, number>> = { kbit: 0.001, mbit: 1, gbit: 1000 };

/** `1gbit`, `100mbit`, `2.5gbit`, `unshaped`; undefined when it is not a rate. */
function rateOf(text: string): number | undefined {
  if (text === UNSHAPED) return Number.POSITIVE_INFINITY;
  const match = /^(\d+(?:\.\d+)?)(kbit|mbit|gbit)$/.exec(text);
  const mbit = match === null ? 0 : Number(match[1]) * UNITS[match[2]];
  return mbit > 0 ? mbit : undefined;
}

/** ERR_ARG when it is no rate. */
export function parseRate(text: string): number {
  const mbit = rateOf(text.toLowerCase());
  if (mbit === undefined) throw new MultirailError('ERR_ARG', `"${text}" is not a rate: expected one such as 1gbit, 100mbit or unshaped`);
  return mbit;
}

export function showRate(mbit: number): string {
  if (mbit === Number.POSITIVE_INFINITY) return UNSHAPED;
  if (mbit >= 1000) return `${mbit / 1000} Gbit/s`;
  return mbit >= 1 ? `${mbit} Mbit/s` : `${mbit * 1000} kbit/s`;
}

/** `rate`, `name=rate`, `fast` or `slow`, separated by commas. Without a name a rail is called by its number. */
export function parseRails(text: string): NamedRail[] {
  const words = text
    .split(',')
    .map((word) => word.trim())
    .filter((word) => word !== '');
  if (words.length < 1 || words.length > MAX_RAILS)
    throw new MultirailError('ERR_ARG', `a lab has 1 to ${MAX_RAILS} rails, not ${words.length}`);
  const rails = words.map((word, i): NamedRail => {
    const [name, rate] = word.includes('=') ? word.split('=', 2) : [undefined, word];
    if (name === undefined && word in PRESETS) return { name: word, mbit: PRESETS[word] };
    if (name === undefined) return { name: String(i), mbit: parseRate(rate) };
    if (!/^[a-z][a-z0-9-]{0,19}$/i.test(name))
      throw new MultirailError('ERR_ARG', `"${name}" cannot name a rail: letters, digits and - are allowed`);
    return { name, mbit: parseRate(rate) };
  });
  const twice = rails.find(({ name }, i) => rails.findIndex((other) => other.name === name) !== i);
  if (twice !== undefined) throw new MultirailError('ERR_ARG', `two rails are called ${twice.name}`);
  return rails;
}

/** The number of the rail with this name or number. */
export function railIndex(rails: readonly NamedRail[], text: string): number {
  const byName = rails.findIndex(({ name }) => name === text);
  if (byName >= 0) return byName;
  const index = /^\d{1,3}$/.test(text) ? Number(text) : -1;
  if (index >= 0 && index < rails.length) return index;
  throw new MultirailError(
    'ERR_ARG',
    `there is no rail "${text}": there ${rails.length === 1 ? 'is' : 'are'} ${rails.map(({ name }) => name).join(', ')}`,
  );
}

/** JSON has no infinity, which is the rate of a rail that is not shaped. */
export const labJson = (value: unknown): string =>
  JSON.stringify(value, (_key, part: unknown) => (part === Number.POSITIVE_INFINITY ? UNSHAPED : part));

/** Reads what labJson() wrote. */
export const parseLabJson = (text: string): unknown =>
  JSON.parse(text, (key, part: unknown) => (key === 'mbit' && part === UNSHAPED ? Number.POSITIVE_INFINITY : part));
