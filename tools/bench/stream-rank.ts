// A rank of a failover run from end to end: it runs its side, and on rank 0 shows the run live, prints the report, writes plot and figures,
// and says the verdict. Its result is the exit code.
import { join } from 'node:path';
import { MultirailError } from '../../src/errors.ts';
import type { Communicator } from '../../src/mpi/communicator.ts';
import type { Runtime } from '../../src/mpi/runtime.ts';
import { writeFigures, writeWhole } from './figures.ts';
import { eventLine, LiveDisplay } from './live-display.ts';
import { describeMachine, machineInfo } from './machine.ts';
import { failoverPlot } from './plot.ts';
import { pulledText, type RailHand, railName } from './rail-actions.ts';
import { reportLines, verdictLine } from './report.ts';
import { receiveStream, type StreamReport, type StreamSpec, sendStream } from './stream.ts';

export interface StreamOutput {
  /** Undefined: no plot. */
  plotFolder: string | undefined;
  jsonFile: string | undefined;
  /** The command as a person would type it again. */
  commandLine: string;
}

const EVENTS_SHOWN_MAX = 20;
const PLOT_NAME = 'failover.svg';

/** Apart from those of the stream. */
const MEET_TAG = 30_000;

export function describeSpec(spec: StreamSpec, railCount: number): string {
  const actions = spec.actions.map(
    ({ kind, rail, atMs }) => `${railName(rail)} ${kind === 'pull' ? pulledText(spec.mode) : 'put back'} at ${atMs / 1000} s`,
  );
  const what = `${spec.sizeBytes.toLocaleString('en-US')}-byte messages for ${spec.durationMs / 1000} s over ${railCount} ${railCount === 1 ? 'rail' : 'rails'}`;
  return [what, `window ${spec.window}`, spec.verify ? 'verified' : 'contents not verified', ...actions].join(', ');
}

/** Runs this rank's side over `comm`; resolves with the exit code. */
export async function streamAsRank(
  mpi: Runtime,
  comm: Communicator,
  hand: RailHand,
  spec: StreamSpec,
  output: StreamOutput,
): Promise<number> {
  if (comm.size !== 2) throw new MultirailError('ERR_ARG', `the failover run takes two ranks, but the job has ${comm.size}`);
  // Rails are made when they are first used, and the run is about them.
  await comm.sendrecv(new Uint8Array(1), 1 - comm.rank, MEET_TAG, new Uint8Array(1), 1 - comm.rank, MEET_TAG);
  if (comm.rank === 1) {
    await sendStream(mpi, comm, hand, spec);
    return 0;
  }
  const machine = machineInfo();
  const out = process.stdout;
  const railCount = mpi.rails().filter(({ peer }) => peer === 1).length;
  out.write(`# multirail failover run: ${describeSpec(spec, railCount)}\n# ${describeMachine(machine)}\n`);
  const isTerminal = out.isTTY === true;
  const display = new LiveDisplay({
    out,
    isTerminal,
    color: isTerminal && (process.env.NO_COLOR ?? '') === '',
    columns: out.columns ?? 80,
    durationMs: spec.durationMs,
  });
  let report: StreamReport;
  try {
    report = await receiveStream(mpi, comm, hand, spec, display);
  } finally {
    display.stop();
  }
  const lines: string[] = [];
  const elsewhere = report.events.filter(({ rank }) => rank !== 0);
  if (elsewhere.length > 0) lines.push('', 'Events at the sender', ...elsewhere.slice(0, EVENTS_SHOWN_MAX).map(eventLine));
  if (elsewhere.length > EVENTS_SHOWN_MAX) lines.push(`           and ${elsewhere.length - EVENTS_SHOWN_MAX} more`);
  lines.push(...reportLines(report));
  out.write(`${lines.join('\n')}\n\n`);
  if (output.jsonFile !== undefined) {
    writeFigures(output.jsonFile, { machine, command: output.commandLine, verdict: verdictLine(report), ...report });
    out.write(`Figures: ${output.jsonFile}\n`);
  }
  if (output.plotFolder !== undefined) {
    const file = join(output.plotFolder, PLOT_NAME);
    try {
      const svg = await failoverPlot(report, {
        title: 'Payload carried by each rail',
        foot: [output.commandLine, describeMachine(machine)],
      });
      writeWhole(file, svg);
      out.write(`Plot: ${file}\n`);
    } catch (error) {
      // A missing picture changes nothing of what was found.
      out.write(`Plot: not drawn: ${(error as Error).message}\n`);
    }
  }
  out.write(`${verdictLine(report)}\n`);
  return report.problems.length === 0 ? 0 : 1;
}
