// A rank of the tests of processes that die, of saves, and of logs: runs its part; rank 0 prints the table and writes the figures.
import type { Runtime } from '../../src/mpi/runtime.ts';
import { writeFigures } from './figures.ts';
import { type FtOptions, ftLines, runFt } from './ft.ts';
import { type FtLogOptions, ftLogLines, ftLogTargets, runFtLog } from './ft-log.ts';
import { type FtSaveOptions, ftSaveLines, ftSaveTargets, runFtSave } from './ft-save.ts';
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

export async function ftSaveAsRank(mpi: Runtime, options: FtSaveOptions, output: TableOutput): Promise<void> {
  const machine = machineInfo();
  const figures = await runFtSave(mpi, options);
  if (figures === undefined) return;
  process.stdout.write(`# ${describeMachine(machine)}; ${figures.ranks} ranks, ${options.deaths} deaths\n`);
  for (const line of ftSaveLines(figures)) process.stdout.write(`${line}\n`);
  if (output.jsonFile === undefined) return;
  writeFigures(output.jsonFile, { machine, command: output.commandLine, ...figures, targets: ftSaveTargets(figures) });
}

export async function ftLogAsRank(mpi: Runtime, options: FtLogOptions, output: TableOutput): Promise<void> {
  const machine = machineInfo();
  const figures = await runFtLog(mpi, options);
  if (figures === undefined) return;
  process.stdout.write(`# ${describeMachine(machine)}; ${figures.ranks} ranks\n`);
  for (const line of ftLogLines(figures)) process.stdout.write(`${line}\n`);
  if (output.jsonFile === undefined) return;
  writeFigures(output.jsonFile, { machine, command: output.commandLine, ...figures, targets: ftLogTargets(figures) });
}
