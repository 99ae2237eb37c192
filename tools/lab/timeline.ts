// Reads a script of what happens to the links of a lab, and when: one action per line, with its time in front, counted from the start of the
// job.
//   # a comment
//   1.5s   pull fast
//   3s     restore fast
import { MultirailError } from '../../src/errors.ts';
import { type LabAction, parseAction, parseTime } from './actions.ts';
import type { NamedRail } from './rails.ts';

export interface TimelineStep {
  atMs: number;
  action: LabAction;
}

/** ERR_ARG, with the number of the line, for what cannot be read. Steps come out in the order of their times. */
export function parseTimeline(text: string, rails: readonly NamedRail[], nodes: number): TimelineStep[] {
  const steps: TimelineStep[] = [];
  text.split('\n').forEach((line, i) => {
    const words = line
      .replace(/#.*/, '')
      .split(/\s+/)
      .filter((word) => word !== '');
    if (words.length === 0) return;
    try {
      steps.push({ atMs: parseTime(words[0]), action: parseAction(words.slice(1), rails, nodes) });
    } catch (error) {
      if (!(error instanceof MultirailError)) throw error;
      throw new MultirailError('ERR_ARG', `line ${i + 1} of the timeline: ${error.message.slice(error.code.length + 2)}`, { cause: error });
    }
  });
  return steps.sort((a, b) => a.atMs - b.atMs);
}

/** Carries the steps out, each at its time from now on; ends early when the signal is aborted. */
export async function playTimeline<Step extends Pick<TimelineStep, 'atMs'>>(
  steps: readonly Step[],
  apply: (step: Step) => Promise<void>,
  signal: AbortSignal,
): Promise<void> {
  const startMs = performance.now();
  for (const step of steps) {
    await pause(step.atMs - (performance.now() - startMs), signal);
    if (signal.aborted) return;
    await apply(step);
  }
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  if (ms <= 0 || signal.aborted) return Promise.resolve();
  return new Promise((resolve) => {
    const done = () => {
      clearTimeout(timer);
      signal.removeEventListener('abort', done);
      resolve();
    };
    const timer = setTimeout(done, ms);
    signal.addEventListener('abort', done);
  });
}
