// Carries the driver convention over lines of text: for the standard input and output, and for TCP connections.
import { createServer, type Server } from 'node:net';
import { createInterface } from 'node:readline';
import type { Readable, Writable } from 'node:stream';
import { MultirailError } from '../../../src/errors.ts';
import type { CommandName, Commands } from '../convention.ts';
import { type DriverOptions, EndpointDriver } from './driver.ts';

/** Answers commands, one after the other, until the input ends; then the job is stopped. */
export async function serveLines(input: Readable, output: Writable, options: DriverOptions): Promise<void> {
  const driver = new EndpointDriver(options);
  output.on('error', () => undefined);
  try {
    for await (const line of createInterface({ input, crlfDelay: Number.POSITIVE_INFINITY })) {
      if (line.trim() !== '') output.write(`${JSON.stringify(await answer(driver, line))}\n`);
    }
  } finally {
    await driver.stop();
  }
}

async function answer(driver: EndpointDriver, line: string): Promise<unknown> {
  let id: unknown;
  try {
    const { id: given, do: name, ...args } = JSON.parse(line) as { id: unknown; do: CommandName };
    id = given;
    return { id, ...(await driver.run(name, args as unknown as Commands[CommandName]['in'])) };
  } catch (error) {
    return { id, failed: error instanceof Error ? error.message : String(error) };
  }
}

/** Waits for testers on a TCP address, one at a time. Resolves once it listens. */
export function listenForTesters(host: string, port: number, options: DriverOptions): Promise<Server> {
  let busy = false;
  const server = createServer((socket) => {
    socket.on('error', () => undefined);
    if (busy) {
      socket.end(`${JSON.stringify({ failed: 'another tester is at work' })}\n`);
      return;
    }
    busy = true;
    void serveLines(socket, socket, options).finally(() => {
      busy = false;
      socket.destroy();
    });
  });
  return new Promise((resolve, reject) => {
    server.once('error', (cause) =>
      reject(new MultirailError('ERR_INIT', `cannot listen on ${host}:${port}: ${cause.message}`, { cause })),
    );
    server.listen(port, host, () => resolve(server));
  });
}
