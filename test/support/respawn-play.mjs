// Plays a job of `multirail run --respawn` whose ranks are killed again and again, at moments that a seed chooses, as soon as its communicator
// is whole again: the program of test/system/fixtures/ft-respawn-rank.mjs. Process 0 is never killed: its memory, and that of the launcher,
// show what each death leaves behind.
import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import process from 'node:process';

/** What a job that hangs may still say. */
const LAST_WORDS_MS = 3000;

/** Ends a job that hangs: who waits for whom is printed first, and its guard ends the ranks. `onHang` is told when its time is over. */
export function endAfter(child, limitMs, onHang) {
  const timers = [
    setTimeout(() => {
      onHang();
      child.kill('SIGUSR2');
    }, limitMs),
    setTimeout(() => child.kill('SIGTERM'), limitMs + LAST_WORDS_MS),
    setTimeout(() => child.kill('SIGKILL'), limitMs + 3 * LAST_WORDS_MS),
  ];
  child.on('close', () => {
    for (const timer of timers) clearTimeout(timer);
  });
}
/** A second rank dies with the first one, once in so many times. */
const DOUBLE_EVERY = 4;
const DELAY_MS_MAX = 60;

/** Numbers from 0 to 2^32 − 1 (mulberry32). */
export function numbersOf(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return (mixed ^ (mixed >>> 14)) >>> 0;
  };
}

function rssOf(pid) {
  try {
    return 1024 * Number(/^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'latin1'))?.[1] ?? 0);
  } catch {
    return 0;
  }
}

/**
 * Resolves when the job has ended. `words`: how a job is started, up to the program. `problems` is empty when all is well; `rss` has the
 * resident bytes of process 0 and of the launcher at each recovery, and the bytes that process 0 has in use.
 *
 * @param {{ words: readonly string[], ranks: number, kills: number, seed: number, limitMs: number }} options
 * @returns {Promise<{ problems: string[], killed: number, recoveries: number, rss: { process: number, inUse: number, launcher: number }[], stdout: string, stderr: string }>}
 */
export function playRespawn({ words, ranks, kills, seed, limitMs }) {
  const next = numbersOf(seed);
  const child = spawn(process.execPath, [...words, String(kills)], { stdio: ['ignore', 'pipe', 'pipe'] });
  const said = { stdout: '', stderr: '' };
  const problems = [];
  const rss = [];
  /** Lines of the present epoch, by rank. */
  let whole = new Map();
  let epoch = -1;
  let killed = 0;
  const strike = (pid) => {
    try {
      process.kill(pid, 'SIGKILL');
      killed++;
    } catch {
      problems.push(`process ${pid} had ended before it was killed`);
    }
  };
  const takeLine = (line) => {
    const match = /epoch (\d+): rank (\d+) of (\d+) is process (\d+), pid (\d+), (\d+) deaths, rss (\d+), in use (\d+)$/.exec(line);
    if (match === null) return;
    const [at, rank, size, number, pid, deaths, bytes, inUse] = match.slice(1).map(Number);
    if (at !== epoch) whole = new Map();
    epoch = at;
    whole.set(rank, { number, pid });
    if (number === 0) rss.push({ process: bytes, inUse, launcher: rssOf(child.pid) });
    if (size !== ranks) problems.push(`epoch ${at}: the communicator has ${size} ranks`);
    if (whole.size < ranks) return;
    if (deaths !== killed) problems.push(`epoch ${at}: ${deaths} deaths were made up for, and ${killed} ranks were killed`);
    const many = Math.min(kills - killed, next() % DOUBLE_EVERY === 0 ? 2 : 1);
    const victims = [...whole.values()].filter((one) => one.number !== 0);
    setTimeout(() => {
      for (let i = 0; i < many; i++) strike(victims.splice(next() % victims.length, 1)[0].pid);
    }, next() % DELAY_MS_MAX);
  };
  let rest = '';
  child.stdout.setEncoding('utf8').on('data', (text) => {
    said.stdout += text;
    const lines = (rest + text).split('\n');
    rest = lines.pop();
    for (const line of lines) takeLine(line);
  });
  child.stderr.setEncoding('utf8').on('data', (text) => {
    said.stderr += text;
  });
  return new Promise((resolve) => {
    endAfter(child, limitMs, () => problems.push(`it had not ended after ${limitMs / 1000} s`));
    child.on('close', (code, signal) => {
      if (code !== 0) problems.push(`it ended with ${signal ?? `exit code ${code}`}`);
      const died = said.stderr.match(/; the other ranks go on$/gm)?.length ?? 0;
      if (died !== killed) problems.push(`${died} processes have died, and ${killed} were killed`);
      if (killed !== kills) problems.push(`${killed} of ${kills} kills were carried out`);
      const ends = said.stdout.match(new RegExp(`of ${ranks} at the end of \\d+ recoveries, after ${kills} deaths`, 'g'))?.length ?? 0;
      if (ends !== ranks) problems.push(`${ends} of ${ranks} ranks came to the end with the right count`);
      resolve({ problems, killed, recoveries: epoch, rss, ...said });
    });
  });
}
