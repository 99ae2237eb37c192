// Commands of MPICH and of Open MPI are told apart by what they say about themselves, not by their names.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { mpiCommand } from '../../launchers/mpi-commands.mjs';

const OPEN_MPI = 'mpirun (Open MPI) 4.1.4';
const MPICH = 'HYDRA build details:\n    Version:                                 4.0.2';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'mpi-commands-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const install = (name: string, says: string, exitCode = 0) =>
  writeFileSync(join(folder, name), `#!/bin/sh\n/bin/cat <<'END'\n${says}\nEND\nexit ${exitCode}\n`, { mode: 0o755 });
const found = () => {
  const env = { PATH: folder };
  return [mpiCommand('Open MPI', env), mpiCommand('MPICH', env)];
};

test('a mpirun of MPICH is no Open MPI', () => {
  install('mpirun', MPICH);
  install('mpiexec', MPICH);
  expect(found()).toEqual([undefined, 'mpiexec']);
});

test('where both are installed, each has a name of its own', () => {
  for (const [name, says] of [
    ['mpirun', MPICH],
    ['mpiexec', MPICH],
    ['mpiexec.mpich', MPICH],
    ['mpirun.openmpi', OPEN_MPI],
  ])
    install(name, says);
  expect(found()).toEqual(['mpirun.openmpi', 'mpiexec.mpich']);
});

test('Open MPI alone has the plain name; a command that fails is none', () => {
  install('mpirun.openmpi', OPEN_MPI, 1);
  install('mpirun', OPEN_MPI);
  install('mpiexec.mpich', MPICH);
  expect(found()).toEqual(['mpirun', 'mpiexec.mpich']);
});
