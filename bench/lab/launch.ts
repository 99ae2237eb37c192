// Launcher of a measured job: runs in the network namespace of rank 0 and starts each other rank in its own. The out-of-band
// channel listens on the given addresses only, so that it is pulled together with the rails.
// Argument: JSON of LaunchSpec. Imports the launcher.
import { runJob } from '../../src/launch/run/launcher.ts';

export interface LaunchSpec {
  program: string;
  nodeArgs: string[];
  /** By rank; null = the namespace of this process. */
  namespaces: (string | null)[];
  oobListen: string[];
  mca: Record<string, string>;
  args: string[];
}

const spec = JSON.parse(process.argv[2]) as LaunchSpec;
const result = await runJob({
  size: spec.namespaces.length,
  command: [spec.program, ...spec.args],
  nodeArgs: spec.nodeArgs,
  // What is measured are rails that are there, whether a program would use them or not.
  mca: { mpi_preconnect: 'all', ...spec.mca },
  oobListen: spec.oobListen,
  stdinTo: 'none',
  // SIGUSR2 asks who waits for whom.
  forwardSignals: true,
  rankCommand: (rank) => {
    const namespace = spec.namespaces[rank];
    return namespace === null ? [] : ['ip', 'netns', 'exec', namespace];
  },
});
if (result.failure !== undefined) process.stderr.write(`job failed: ${result.failure}\n`);
process.exitCode = result.exitCode;
