// Sections of bench/RESULTS.md that one script writes between two marks: when, at which commit and on what machine they were measured, and the
// place. Imports node:*.
import { spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { cpus, release } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import { ROOT } from './figures.mjs';

/** `versions`: of what else was measured; `load`: before it began. */
export function measuredAt(versions, load) {
  const commit = spawnSync('git', ['rev-parse', '--short', 'HEAD'], { cwd: ROOT, encoding: 'utf8' }).stdout?.trim() || 'no commit';
  const machine = `${cpus().length} × ${cpus()[0].model.trim()}, kernel ${release()}, Node ${process.version}, ${versions}`;
  return `${new Date().toISOString().slice(0, 10)}, measured at ${commit}, ${machine}, load ${load} before.`;
}

/** Puts the text between the marks; they stay. */
export function writeBetween(begin, end, text) {
  const file = join(ROOT, 'bench/RESULTS.md');
  const before = readFileSync(file, 'utf8');
  const [from, to] = [before.indexOf(begin), before.indexOf(end)];
  if (from < 0 || to < from) throw new Error(`${file} has no place for the table: ${begin} … ${end}`);
  writeFileSync(file, `${before.slice(0, from + begin.length)}\n${text}\n${before.slice(to)}`);
}
