// Times between failures, drawn from a seeded generator that the caller hands in.
import type { Prng } from '../../util/prng.ts';

/** Uniform in (0, 1), the ends excluded. */
const uniform = (prng: Prng): number => (prng.nextU32() + 0.5) / 2 ** 32;

/** Exponential with this mean: p = -ln(u) / lambda, as in figure 6 of paper 002. */
export const exponential = (prng: Prng, mean: number): number => -Math.log(uniform(prng)) * mean;

/** Mean and standard deviation of values that come one by one. */
export class Moments {
  private count = 0;
  private sum = 0;
  private squares = 0;

  add(value: number): void {
    this.count++;
    this.sum += value;
    this.squares += value * value;
  }
  get mean(): number {
    return this.sum / this.count;
  }
  get deviation(): number {
    return Math.sqrt(Math.max(0, this.squares / this.count - this.mean ** 2));
  }
}
