// The thread of a replica that answers for it how much processor time the process has used, and asks the others, on other hosts. It goes on while the
// program computes, or is caught in a loop, which is what the others want to know. It never reads what the program does.
import { parentPort, workerData } from 'node:worker_threads';
import { type ClockBuffers, ClockMemory } from './clock-memory.ts';
import { type ClockAddress, ClockSocket } from './clock-socket.ts';

export interface ClockThreadData {
  readonly self: number;
  readonly secret: Uint8Array;
  readonly addresses: readonly string[];
  /** Numbers of the other processes, by their index in the memory. */
  readonly others: readonly number[];
  readonly buffers: ClockBuffers;
}

export type ToClockThread =
  | { readonly do: 'know'; readonly number: number; readonly address: ClockAddress }
  | { readonly do: 'ask'; readonly number: number; readonly question: number }
  | { readonly do: 'end'; readonly number: number };

/** The only word of the thread: it can be asked there. */
export type FromClockThread = ClockAddress;

const { self, secret, addresses, others, buffers } = workerData as ClockThreadData;
const memory = new ClockMemory(buffers);

const socket = new ClockSocket({
  self,
  secret,
  addresses,
  read: () => {
    // Of all threads of the process.
    const { user, system } = process.cpuUsage();
    return { ms: (user + system) / 1000, calls: memory.calls[0] };
  },
  onAnswer: (from, question, reading) => memory.write(others.indexOf(from), question, reading),
  onEnd: () => process.kill(process.pid, 'SIGKILL'),
});

parentPort?.on('message', (message: ToClockThread) => {
  if (message.do === 'know') socket.know(message.number, message.address);
  else if (message.do === 'ask') socket.ask(message.number, message.question);
  else socket.end(message.number);
});
parentPort?.postMessage((await socket.open()) satisfies FromClockThread);
