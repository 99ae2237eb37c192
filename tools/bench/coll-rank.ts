// A rank of one OSU-style collective test: runs its part; rank 0 prints the table and writes the figures.
import type { Communicator } from '../../src/mpi/communicator.ts';
import { type CollOptions, type CollRow, collHead, collLine, runColl } from './coll.ts';
import { writeFigures } from './figures.ts';
import { describeMachine, machineInfo } from './machine.ts';
import type { TableOutput } from './pt2pt-rank.ts';

export async function collAsRank(comm: Communicator, options: CollOptions, output: TableOutput): Promise<void> {
  if (comm.rank !== 0) return await runColl(comm, options, () => undefined);
  const machine = machineInfo();
  const rows: CollRow[] = [];
  const print = (line: string) => process.stdout.write(`${line}\n`);
  print(`# ${describeMachine(machine)}; ${comm.size} ranks`);
  for (const line of collHead(options.test)) print(line);
  await runColl(comm, options, (row) => {
    rows.push(row);
    print(collLine(row));
  });
  if (output.jsonFile === undefined) return;
  const figures = { machine, command: output.commandLine, test: options.test, sync: options.sync, ranks: comm.size, rows };
  writeFigures(output.jsonFile, figures);
}
