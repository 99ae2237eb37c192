// One JSON text per line over a stream: how a launcher talks to its agents on other hosts, and to a process that watches its job.
import type { Readable } from 'node:stream';
import { MultirailError } from '../../errors.ts';

/** A line that is longer is no line of ours. */
export const LINE_CHARS_MAX = 8 * 1024 * 1024;

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
    if (text.length > LINE_CHARS_MAX)
      stream.destroy(new MultirailError('ERR_LAUNCH', `a line is longer than ${LINE_CHARS_MAX} characters`));
  });
}

export const lineOf = (message: object): string => `${JSON.stringify(message)}\n`;
