// Rails of a lab that go and come as often as every 10 ms. A process of `tc` or `ip` for each change takes longer than that: one process
// is kept, and lines are written to it. Imports the lab, its plan (the lines), node: modules.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { type Lab, LabError } from '../src/lab/lab.ts';
import { blackholeLine, shapeLine, wirePort, wireUpLines } from '../src/lab/plan.ts';
import { nowMs } from './lab-protocol.ts';

export interface QuickFlap {
  /** How often the rail has gone so far. */
  readonly cycles: number;
  /** Ends it, and throws when a line was refused. The rail is left as it happens to be: heal it. */
  stop(): Promise<void>;
}

/** Lines that take a rail away and bring it back, and the tool that reads them. */
function linesOf(lab: Lab, rail: number, silent: boolean): { tool: 'tc' | 'ip'; down: string[]; up: string[] } {
  const nodes = Array.from({ length: lab.nodeCount }, (_, node) => node);
  if (!silent)
    return { tool: 'ip', down: nodes.map((node) => `link set ${wirePort(node, rail)} down`), up: wireUpLines(lab.nodeCount, rail) };
  return {
    tool: 'tc',
    down: nodes.map((node) => blackholeLine(node, rail)),
    up: nodes.map((node) => shapeLine(node, rail, lab.rails[rail])),
  };
}

/** Half of `periodMs` each, from now on. The times are kept on average: a change that is late does not move those after it. */
export function flapQuickly(lab: Lab, rail: number, periodMs: number, { silent }: { silent: boolean }): QuickFlap {
  const { tool, down, up } = linesOf(lab, rail, silent);
  const wire = lab.namespaces().at(-1) as string;
  const child: ChildProcess = spawn(tool, ['-n', wire, '-batch', '-'], { stdio: ['pipe', 'ignore', 'pipe'] });
  let words = '';
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    words = (words + text).slice(-1000);
  });
  child.stdin?.on('error', () => {});
  const ended = once(child, 'close');
  const startMs = nowMs();
  let changes = 0;
  let timer: NodeJS.Timeout | undefined;
  const change = () => {
    child.stdin?.write(`${(changes % 2 === 0 ? down : up).join('\n')}\n`);
    changes++;
    timer = setTimeout(change, Math.max(0, startMs + (changes * periodMs) / 2 - nowMs()));
  };
  change();
  return {
    get cycles() {
      return Math.ceil(changes / 2);
    },
    async stop() {
      clearTimeout(timer);
      child.stdin?.end();
      const [code] = await ended;
      if (code !== 0) throw new LabError(`exit ${code}: ${words.trim()}`, `${tool} -n ${wire} -batch -`);
    },
  };
}
