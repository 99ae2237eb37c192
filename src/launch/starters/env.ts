// Reads texts and whole numbers from an environment, with errors that name the variable.
import { MultirailError } from '../../errors.ts';

export type Env = Readonly<Record<string, string | undefined>>;

/** Set, and not empty. */
export function has(env: Env, name: string): boolean {
  return env[name] !== undefined && env[name] !== '';
}

/** `because` says why it has to be there: "although MULTIRAIL_RANK is". */
export function envText(env: Env, name: string, because: string): string {
  const text = env[name];
  if (text === undefined || text === '') throw new MultirailError('ERR_INIT', `${name} is not set, ${because}`);
  return text;
}

export function envInt(env: Env, name: string, min: number, max: number, because: string): number {
  const text = envText(env, name, because);
  const value = /^\d+$/.test(text) ? Number(text) : Number.NaN;
  if (!(value >= min && value <= max))
    throw new MultirailError('ERR_INIT', `${name}="${text}": expected a whole number from ${min} to ${max}`);
  return value;
}

/** As envInt, but undefined where the variable is not set. */
export function envIntIfSet(env: Env, name: string, min: number, max: number): number | undefined {
  return has(env, name) ? envInt(env, name, min, max, '') : undefined;
}
