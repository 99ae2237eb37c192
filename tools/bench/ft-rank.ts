// A rank of the test of processes that die: runs its part; rank 0 prints the table and writes the figures.
import type { Runtime } from '../../src/mpi/runtime.ts';
import { writeFigures } from './figures.ts';
import { type FtOptions, ftLines, runFt } from './ft.ts';
import { describeMachine, machineInfo } from './machine.ts';
import type { TableOutput } from './pt2pt-rank.ts';

export async function ftAsRank(mpi: Runtime, options: FtOptions, spares: number, output: TableOutput): Promise<void> {
  const machine = machineInfo();
  const figures = await runFt(mpi, options, spares);
  if (figures === undefined) return;
  const calls = options.sync ? 'blocking calls' : 'promises';
  process.stdout.write(`# ${describeMachine(machine)}; ${figures.ranks} ranks, ${spares} that stand by, ${calls}\n`);
  for (const line of ftLines(figures)) process.stdout.write(`${line}\n`);
  if (output.jsonFile === undefined) return;
  writeFigures(output.jsonFile, { machine, command: output.commandLine, sync: options.sync, spares, ...figures });
}
