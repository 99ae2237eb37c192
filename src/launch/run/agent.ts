// The launcher's agent on another host: it starts ranks there, carries their input and output, and makes sure that no rank outlives the
// launcher. It runs as `multirail agent` behind ssh.
import type { Readable } from 'node:stream';
import { lineOf, readLines } from '../oob/lines.ts';
import { AGENT_VERSION, type FromAgent, type ToAgent } from './agent-wire.ts';
import { RankGuard } from './guard.ts';
import { LocalRank } from './rank-child.ts';

/** Between SIGTERM and SIGKILL when the launcher is gone. */
const KILL_GRACE_MS = 1000;

/** Serves until its input ends and no rank is left; resolves then. */
export function serveAgent(input: Readable, output: NodeJS.WritableStream, log: (text: string) => void): Promise<void> {
  return new Promise((resolve) => {
    const ranks = new Map<number, LocalRank>();
    let starting = 0;
    let isOver = false;
    const guard = new RankGuard(log);
    // The connection may be gone: its end is noticed on the input.
    output.on('error', () => undefined);
    const say = (message: FromAgent): boolean => output.write(lineOf(message));
    const killAll = (signal: NodeJS.Signals) => {
      for (const rank of ranks.values()) rank.kill(signal);
    };
    const finish = () => {
      if (!isOver || ranks.size > 0 || starting > 0) return;
      guard.done();
      resolve();
    };

    const start = async (spec: ToAgent & { do: 'start' }) => {
      const { rank, command, cwd, hasInput } = spec;
      // The ranks watch this process: it is their parent.
      const env = { ...process.env, ...spec.env, MULTIRAIL_LAUNCHER_PID: String(process.pid) };
      starting++;
      let child: LocalRank;
      try {
        child = await LocalRank.start(
          {
            rank,
            command,
            cwd,
            env,
            secret: Buffer.from(spec.secret, 'base64'),
            stdin: hasInput ? 'pipe' : 'ignore',
            stdout: 'pipe',
            stderr: 'pipe',
          },
          (error) => log(`rank ${rank}: ${error.message}`),
        );
      } catch (error) {
        say({ is: 'failed', rank, text: (error as Error).message });
        return;
      } finally {
        starting--;
        finish();
      }
      ranks.set(rank, child);
      guard.add(child.pid);
      say({ is: 'started', rank, pid: child.pid });
      carry(rank, 1, child.stdout);
      carry(rank, 2, child.stderr);
      child.stdin?.on('error', () => undefined);
      void child.ended.then((end) => {
        guard.gone(child.pid);
        say({ is: 'ended', rank, ...end });
      });
      void child.closed.then(() => {
        say({ is: 'closed', rank });
        ranks.delete(rank);
        finish();
      });
      if (isOver) child.kill('SIGKILL');
    };

    const carry = (rank: number, fd: 1 | 2, stream: Readable | null) => {
      stream?.on('data', (data: Buffer) => {
        if (say({ is: 'output', rank, fd, data: data.toString('base64') })) return;
        stream.pause();
        output.once('drain', () => stream.resume());
      });
    };

    readLines<ToAgent>(
      input,
      (message) => {
        if (message.do === 'start') return void start(message);
        const rank = ranks.get(message.rank);
        if (message.do === 'signal') rank?.kill(message.signal);
        else if (message.do === 'input') rank?.stdin?.write(Buffer.from(message.data, 'base64'));
        else rank?.stdin?.end();
      },
      (line) => log(`not understood: ${line.slice(0, 80)}`),
    );
    const end = () => {
      if (isOver) return;
      isOver = true;
      killAll('SIGTERM');
      setTimeout(() => killAll('SIGKILL'), KILL_GRACE_MS).unref();
      finish();
    };
    input.on('end', end).on('close', end).on('error', end);
    // Whoever ends the connection may also end this process: the ranks go first.
    for (const signal of ['SIGTERM', 'SIGHUP', 'SIGINT'] as const) process.on(signal, end);
    say({ is: 'hello', version: AGENT_VERSION, pid: process.pid, node: process.version });
  });
}
