// The events of a job as JSON lines in a file, each written when it happens.
import { createWriteStream, openSync, type WriteStream } from 'node:fs';
import { MultirailError } from '../../src/errors.ts';
import type { EventLog } from './event-log.ts';
import type { JobEvent } from './messages.ts';

/** What waits for a slow disk or reader; beyond it events are left out, and counted. */
const WAITING_BYTES_MAX = 8 * 1024 * 1024;

export const eventLine = (event: JobEvent): string => `${JSON.stringify(event)}\n`;

export class EventsFile {
  private readonly path: string;
  private readonly stream: WriteStream;
  private readonly say: (text: string) => void;
  private stopListening: (() => void) | undefined;
  private leftOut = 0;
  private failed = false;

  /** Opens the file, and empties it. Throws ERR_CONFIG when that cannot be done. */
  constructor(path: string, say: (text: string) => void) {
    this.path = path;
    this.say = say;
    let fd: number;
    try {
      fd = openSync(path, 'w');
    } catch (error) {
      throw new MultirailError('ERR_CONFIG', `the events cannot be written to ${path}: ${(error as Error).message}`, { cause: error });
    }
    this.stream = createWriteStream(path, { fd });
    this.stream.on('error', (error) => this.fail(error));
  }

  /** Writes what has happened and what happens from now on. */
  follow(log: EventLog): void {
    for (const event of log.since(0)) this.write(event);
    this.stopListening = log.listen((event) => this.write(event));
  }

  /** Resolves when everything is written, or cannot be. */
  async close(): Promise<void> {
    this.stopListening?.();
    if (this.leftOut > 0) this.say(`${this.leftOut} events were left out of ${this.path}: it was written too slowly`);
    if (this.failed) return;
    await new Promise<void>((resolve) => {
      this.stream.once('error', () => resolve());
      this.stream.end(() => resolve());
    });
  }

  private write(event: JobEvent): void {
    if (this.failed) return;
    if (this.stream.writableLength > WAITING_BYTES_MAX) this.leftOut++;
    else this.stream.write(eventLine(event));
  }

  private fail(error: Error): void {
    if (this.failed) return;
    this.failed = true;
    this.say(`no more events are written to ${this.path}: ${error.message}`);
  }
}
