// What the launcher and its agent on another host say to each other: one JSON text per line, over the standard input and output of the
// command that reaches the host (ssh). Pure but for the stream that is read. May import: errors, node:* (types).
import type { Readable } from 'node:stream';
import { MultirailError } from '../errors.ts';
import type { RankEnd } from './rank-child.ts';

export const AGENT_VERSION = 1;
/** A line that is longer is no line of ours. */
const LINE_CHARS_MAX = 8 * 1024 * 1024;

/** Launcher to agent. The end of its input means that the launcher is gone, or wants no more: the agent kills what it has started. */
export type ToAgent =
  | {
      do: 'start';
      rank: number;
      command: string[];
      cwd: string;
      env: Record<string, string>;
      /** Base64. It travels inside of ssh, and is in no argument list and no environment. */
      secret: string;
      hasInput: boolean;
    }
  | { do: 'signal'; rank: number; signal: NodeJS.Signals }
  /** Base64. */
  | { do: 'input'; rank: number; data: string }
  | { do: 'endInput'; rank: number };

/** Agent to launcher. */
export type FromAgent =
  | { is: 'hello'; version: number; pid: number; node: string }
  | { is: 'started'; rank: number; pid: number }
  | { is: 'failed'; rank: number; text: string }
  /** Base64. */
  | { is: 'output'; rank: number; fd: 1 | 2; data: string }
  | ({ is: 'ended'; rank: number } & RankEnd)
  | { is: 'closed'; rank: number };

/** Calls `take` for each line that is JSON; others, as a shell's greeting, go to `other`. Stops at a line without end. */
export function readLines<T>(stream: Readable, take: (message: T) => void, other: (line: string) => void): void {
  let text = '';
  stream.setEncoding('utf8');
  stream.on('data', (chunk: string) => {
    text += chunk;
    for (let end = text.indexOf('\n'); end >= 0; end = text.indexOf('\n')) {
      const line = text.slice(0, end);
      text = text.slice(end + 1);
      if (!line.startsWith('{')) {
        if (line.trim() !== '') other(line);
        continue;
      }
      let message: T;
      try {
        message = JSON.parse(line) as T;
      } catch {
        other(line);
        continue;
      }
      take(message);
    }
    if (text.length > LINE_CHARS_MAX) stream.destroy(new MultirailError('ERR_LAUNCH', 'a line without end'));
  });
}

export const lineOf = (message: ToAgent | FromAgent): string => `${JSON.stringify(message)}\n`;
