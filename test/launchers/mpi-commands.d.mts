// Types of mpi-commands.mjs, for tests in TypeScript.
export function mpiCommand(kind: 'Open MPI' | 'MPICH', env?: NodeJS.ProcessEnv): string | undefined;
