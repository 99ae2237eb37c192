// What a measurement leaves behind: progress on the terminal, one JSON line per figure, and tables in Markdown with the targets met
// or missed. Imports tools/bench/machine.ts, tools/lab/available.ts and node: modules.
import { spawnSync } from 'node:child_process';
import { appendFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { loadavg } from 'node:os';
import { join } from 'node:path';
import { describeMachine, machineInfo } from '../../tools/bench/machine.ts';
import { chooseCongestionControl } from '../../tools/lab/available.ts';

const FOLDER = join('out', 'lab');

/** The commit that is checked out; undefined outside of a checkout. */
export function commitHere(): string | undefined {
  const { status, stdout } = spawnSync('git', ['describe', '--always', '--exclude', '*', '--dirty'], { encoding: 'utf8' });
  return status === 0 ? stdout.trim() : undefined;
}

/** As bench/RESULTS.md wants to have it said of every figure. */
function measuredAt(): string {
  const commit = commitHere();
  return commit === undefined ? 'measured outside of a checkout' : `measured at ${commit}`;
}

/** What every measurement is told. */
export interface CommonOptions {
  /** Parameters of the ranks. */
  mca: Record<string, string>;
  minutes: number;
  /** How TCP on the lab's nodes finds its rate; the lab's default unless said. */
  congestionControl?: string;
  /** As it was typed. */
  command: string;
}

/** The time that a measurement may take, and what it takes to go on. */
export class Budget {
  private readonly startMs = performance.now();
  private readonly minutes: number;

  constructor(minutes: number) {
    this.minutes = minutes;
  }

  /** Whether something of that length still fits. */
  has(ms: number): boolean {
    return this.elapsedMs + ms <= this.minutes * 60_000;
  }

  get elapsedMs(): number {
    return performance.now() - this.startMs;
  }

  /** `12 min left` out of how much of the work is done, and never more than the bound. */
  eta(done: number, total: number): string {
    if (done === 0) return '';
    const leftMs = Math.min((this.elapsedMs / done) * (total - done), this.minutes * 60_000 - this.elapsedMs);
    return leftMs < 90_000 ? `${Math.max(0, Math.round(leftMs / 1000))} s left` : `${Math.round(leftMs / 60_000)} min left`;
  }
}

export class Report {
  readonly machine = machineInfo();
  private readonly name: string;
  private readonly lines: string[] = [];
  private missed = 0;
  private loadMax = 0;

  /** `resume` keeps the figures that an earlier run of that name has left. */
  constructor(
    name: string,
    { command, congestionControl }: Pick<CommonOptions, 'command' | 'congestionControl'>,
    { resume = false }: { resume?: boolean } = {},
  ) {
    this.name = name;
    mkdirSync(FOLDER, { recursive: true });
    if (!resume || !existsSync(this.file('jsonl'))) writeFileSync(this.file('jsonl'), '');
    this.figure({ machine: this.machine, command, congestionControl });
    const control = `congestion control of TCP: ${chooseCongestionControl(congestionControl)}`;
    this.text(`\`${command}\`: ${describeMachine(this.machine)}, ${control}, ${measuredAt()}`, '');
    process.stdout.write(`# ${command}\n# ${describeMachine(this.machine)}, ${control}\n`);
  }

  private file(ending: string): string {
    return join(FOLDER, `${this.name}.${ending}`);
  }

  /** The figures that are written by now, those of earlier runs included. A line that a killed run left half is none. */
  kept<Line>(): Line[] {
    const lines = readFileSync(this.file('jsonl'), 'utf8').split('\n').slice(0, -1);
    return lines.flatMap((line) => {
      try {
        return [JSON.parse(line, (_key, item: unknown) => (item === 'never' ? Number.POSITIVE_INFINITY : item)) as Line];
      } catch {
        return [];
      }
    });
  }

  /** One line of progress. */
  say(text: string): void {
    process.stdout.write(`${text}\n`);
  }

  /** One figure, written at once: what is there survives whatever comes. */
  figure(value: object): void {
    const [load] = loadavg();
    this.loadMax = Math.max(this.loadMax, load);
    // JSON knows no infinity: it would become null, which reads like nothing at all.
    const text = JSON.stringify({ ...value, load }, (_key, item) => (item === Number.POSITIVE_INFINITY ? 'never' : item));
    appendFileSync(this.file('jsonl'), `${text}\n`);
  }

  text(...lines: string[]): void {
    this.lines.push(...lines);
  }

  table(head: readonly string[], rows: readonly (readonly string[])[]): void {
    this.text(`| ${head.join(' | ')} |`, `|${head.map((_, i) => (i === 0 ? ' --- ' : ' ---: ')).join('|')}|`);
    for (const row of rows) this.text(`| ${row.join(' | ')} |`);
    this.text('');
  }

  /** A target's verdict for a cell; a missed one makes the command's exit code 1. `undefined` = nothing was measured: missed, too. */
  verdict(isMet: boolean): string {
    if (!isMet) this.missed++;
    return isMet ? 'met' : '**missed**';
  }

  get markdown(): string {
    return `${this.lines.join('\n').trimEnd()}\n`;
  }

  /** Writes the Markdown and returns the exit code. */
  end(): number {
    this.text('', `Highest load of the last minute while measuring: ${this.loadMax.toFixed(1)} (the ranks included).`);
    const text = this.markdown;
    writeFileSync(this.file('md'), text);
    process.stdout.write(`\n${text}\nWritten: ${this.file('md')}, ${this.file('jsonl')}\n`);
    if (this.missed > 0) process.stdout.write(`${this.missed} missed\n`);
    return this.missed > 0 ? 1 : 0;
  }
}
