// A rank of one OSU-style test: runs its part; rank 0 prints the table and writes the figures.
import type { Communicator } from '../../src/mpi/communicator.ts';
import { writeFigures } from './figures.ts';
import { describeMachine, machineInfo } from './machine.ts';
import { type OsuRow, tableHead, tableRow } from './osu.ts';
import { type Pt2ptOptions, runPt2pt } from './pt2pt.ts';

export interface TableOutput {
  jsonFile: string | undefined;
  commandLine: string;
}

export async function pt2ptAsRank(comm: Communicator, options: Pt2ptOptions, output: TableOutput): Promise<void> {
  if (comm.rank !== 0) return await runPt2pt(comm, options, () => undefined);
  const machine = machineInfo();
  const rows: OsuRow[] = [];
  const print = (line: string) => process.stdout.write(`${line}\n`);
  print(`# ${describeMachine(machine)}`);
  for (const line of tableHead(options.test, { pairs: Math.floor(comm.size / 2), window: options.window })) print(line);
  await runPt2pt(comm, options, (row) => {
    rows.push(row);
    print(tableRow(row));
  });
  if (output.jsonFile === undefined) return;
  const figures = {
    machine,
    command: output.commandLine,
    test: options.test,
    sync: options.sync,
    window: options.window,
    ranks: comm.size,
    rows,
  };
  writeFigures(output.jsonFile, figures);
}
