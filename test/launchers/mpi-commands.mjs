// Which command starts jobs of which MPI. Debian's packages of MPICH and of Open MPI both bring a `mpirun` and a `mpiexec`, and the one
// that was installed first has the plain name, so each command is asked which MPI it belongs to.
import { spawnSync } from 'node:child_process';

const KINDS = {
  'Open MPI': { commands: ['mpirun.openmpi', 'mpirun', 'mpiexec'], says: /Open MPI|OpenRTE/i },
  MPICH: { commands: ['mpiexec.mpich', 'mpiexec.hydra', 'mpiexec', 'mpirun'], says: /HYDRA|MPICH/i },
};

/** The name of the command, or undefined where there is none. `env` is for tests. */
export function mpiCommand(kind, env = process.env) {
  const { commands, says } = KINDS[kind];
  return commands.find((command) => {
    const { status, stdout, stderr } = spawnSync(command, ['--version'], { encoding: 'utf8', timeout: 20_000, env });
    return status === 0 && says.test(`${stdout}${stderr}`);
  });
}
