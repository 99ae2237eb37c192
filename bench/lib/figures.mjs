// Figures of `multirail bench` for the scripts that compare rounds in turn: how many rounds, and one row of one run. Imports node:*.
import { spawnSync } from 'node:child_process';
import process from 'node:process';

export const ROOT = new URL('../..', import.meta.url).pathname;
const TIMEOUT_MS = 120_000;
const ROUNDS = 9;

/** The only argument of such a script; ends the process when it makes no sense. */
export function roundsFromArguments(script) {
  const rounds = Number(process.argv[2] ?? ROUNDS);
  if (Number.isInteger(rounds) && rounds >= 1) return rounds;
  console.error(`usage: node bench/loopback/${script} [ROUNDS]`);
  process.exit(2);
}

/** A program that is run to its end, in the folder of the project. */
export function runHere(command, args, env = {}) {
  return spawnSync(command, args, { cwd: ROOT, encoding: 'utf8', timeout: TIMEOUT_MS, env: { ...process.env, ...env } });
}

/** The first figure of the row of that size, by `multirail bench` with these words. */
export function benchFigure(sizeBytes, words) {
  const args = ['dist/cli.js', 'bench', ...words, '--sizes', String(sizeBytes)];
  const { stdout, stderr } = runHere(process.execPath, args);
  const [size, figure] =
    stdout
      .split('\n')
      .map((line) => line.trim().split(/\s+/))
      .find(([first]) => first === String(sizeBytes)) ?? [];
  if (size === undefined) throw new Error(`no figure: ${stderr}`);
  return Number(figure);
}
