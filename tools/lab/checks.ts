// How the lab checks its arguments, and small helpers.
import { DELAY_MAX_MS } from './plan.ts';
import { LabError } from './run.ts';

export function range(count: number): number[] {
  return Array.from({ length: count }, (_, i) => i);
}

export function checkCount(what: string, value: number, max: number): void {
  if (!Number.isInteger(value) || value < 1 || value > max) throw new LabError(`${what} must be 1 to ${max}, not ${value}`);
}

export function checkPositive(what: string, value: number): number {
  if (!(Number.isFinite(value) && value > 0)) throw new LabError(`${what} must be a number above zero, not ${value}`);
  return value;
}

export function checkDelay(ms: number): void {
  if (!(ms >= 0 && ms <= DELAY_MAX_MS)) throw new LabError(`a delay is 0 to ${DELAY_MAX_MS} ms, not ${ms}`);
}

export function checkRate(mbit: number): number {
  return mbit === Number.POSITIVE_INFINITY ? mbit : checkPositive('mbit', mbit);
}

export async function labelled(label: string, text: Promise<string>): Promise<string[]> {
  return (await text)
    .split('\n')
    .filter(Boolean)
    .map((line) => `${label}: ${line.trim()}`);
}
