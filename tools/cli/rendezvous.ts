// `multirail rendezvous`: serves the out-of-band channel of a job without a launcher of multirail, so that no rank has to, and the job
// survives the death of any of them.
import type { Command } from 'commander';
import { MultirailError } from '../../src/errors.ts';
import { secretOfFile } from '../../src/launch/meeting/secret.ts';
import { serveJob } from '../../src/launch/meeting/serve.ts';
import { newJobId } from '../../src/launch/run/launcher.ts';
import { KUBERNETES_PORT } from '../../src/launch/starters/kubernetes.ts';
import { ParamTable, survivesFailures } from '../../src/params.ts';
import { PROCESSES_MAX } from '../../src/ulfm/limits.ts';
import { wholeNumber } from './bench.ts';
import { mcaOption } from './run.ts';

/** Both families, or IPv4 alone where the kernel has no IPv6. */
const EVERYWHERE = [[`[::]:${KUBERNETES_PORT}`], [`0.0.0.0:${KUBERNETES_PORT}`]];

interface RendezvousOptions {
  np: number;
  listen: string | undefined;
  mca: Record<string, string>;
}

export function register(program: Command): void {
  program
    .command('rendezvous')
    .description('serve the meeting of a job that another starter starts, until all of its processes are over')
    .requiredOption('-n, --np <N>', 'processes of the start, those that stand by included', wholeNumber(1, PROCESSES_MAX))
    .option('--listen <address>', `HOST:PORT to listen on (default: port ${KUBERNETES_PORT} of every address)`)
    .addOption(mcaOption())
    .addHelpText(
      'after',
      `
The secret of the job is in the file that MULTIRAIL_SECRET_FILE names. Every rank has the same file, this address in
MULTIRAIL_RENDEZVOUS, and --mca oob_served true (MULTIRAIL_MCA_oob_served=true), so that rank 0 serves nothing.
With --mca ft on, here too, processes may join later: docs/guide/when-processes-die.md.`,
    )
    .action(async ({ np, listen, mca }: RendezvousOptions) => {
      const params = new ParamTable(mca, process.env);
      const secret = secretOfFile(process.env);
      if (secret === undefined)
        throw new MultirailError(
          'ERR_ARG',
          'the job has no secret: set MULTIRAIL_SECRET_FILE to a file of at least 16 random bytes, here and at all ranks',
        );
      const say = (text: string): void => void process.stderr.write(`multirail: ${text}\n`);
      const { server, over } = await serveJob(
        {
          jobId: newJobId(),
          size: np,
          spares: Math.min(params.int('ft_spares'), np - 1),
          takesJoins: survivesFailures(params),
          secret: Buffer.from(secret).toString('base64'),
          listen: listen === undefined ? EVERYWHERE : [[listen]],
          reconnectTimeoutMs: params.int('oob_reconnect_timeout_ms'),
          joinTimeoutMs: params.int('oob_join_timeout_ms'),
          exitGraceMs: params.int('oob_exit_grace_ms'),
          waitsJsonFile: params.string('mpi_waits_json_file'),
        },
        say,
      );
      const { host } = new URL(server.urls[0]);
      say(`the rendezvous of a job of ${np} ${np === 1 ? 'process' : 'processes'} listens at ${host}`);
      await over;
      await server.close();
    });
}
