// Plays a job under a starter that kills nobody itself (srun, mpirun of Open MPI, plain shells): its ranks say when they begin to work, and from
// then on some of them are killed at moments that a seed chooses.
import { spawn } from 'node:child_process';
import process from 'node:process';
import { mpiCommand } from '../launchers/mpi-commands.mjs';
import { freePort } from './free-port.mjs';
import { isAlive } from './is-alive.mjs';
import { endAfter, numbersOf } from './respawn-play.mjs';

const asRoot = process.getuid?.() === 0 ? ['--allow-run-as-root'] : [];

/** By name: the commands that start so many processes, each with variables of its own. */
const STARTERS = {
  srun: async (size) => [
    { command: ['srun', '--mpi=pmi2', '-K0', '--no-kill', '--overcommit', '-N4', '-n', String(size), process.execPath], env: {} },
  ],
  mpirun: async (size) => [
    {
      command: [
        mpiCommand('Open MPI') ?? 'mpirun',
        ...asRoot,
        '--oversubscribe',
        '--enable-recovery',
        '-n',
        String(size),
        process.execPath,
      ],
      env: {},
    },
  ],
  env: async (size) => {
    const MASTER_PORT = String(await freePort());
    return Array.from({ length: size }, (_, rank) => ({
      command: [process.execPath],
      env: { RANK: String(rank), WORLD_SIZE: String(size), MASTER_ADDR: 'localhost', MASTER_PORT },
    }));
  },
};
export const OTHER_STARTERS = Object.keys(STARTERS);

/** What a rank says when its program is called: with --verbose examples/ft-heat.mjs does. */
const BEGINS = /rank (\d+) of (\d+) begins at step \d+ \(pid (\d+)\)/g;

/**
 * Resolves when all of its processes have ended.
 *
 * @param {{ starter: string, ranks: number, spares: number, mca: Readonly<Record<string, string>>, program: readonly string[], seed: number,
 *   mtbfMs: number, killsMax: number, killsAll?: boolean, mayStrike?: () => boolean, limitMs: number }} options `mtbfMs`: from one kill to the next, on average.
 *   `killsAll`: all ranks die at the first of these moments. `mayStrike`: a moment waits for it.
 * @returns {Promise<{ stdout: string, stderr: string, kills: number, hung: boolean, ended: string }>} `ended`: how the last of them has ended.
 */
export async function playKilled({
  starter,
  ranks,
  spares,
  mca,
  program,
  seed,
  mtbfMs,
  killsMax,
  killsAll = false,
  mayStrike = () => true,
  limitMs,
}) {
  const next = numbersOf(seed);
  const below = (bound) => next() % bound;
  const said = { stdout: '', stderr: '', kills: 0, hung: false, ended: '' };
  /** Who works as which rank, by what they have said last. */
  const pids = new Map();
  let timer;
  const strike = () => {
    if (!mayStrike()) {
      timer = setTimeout(strike, 20);
      return;
    }
    const living = [...pids].filter(([, pid]) => isAlive(pid));
    if (living.length === 0) return;
    for (const [rank, pid] of killsAll ? living : [living[below(living.length)]]) {
      process.kill(pid, 'SIGKILL');
      said.kills++;
      said.stderr += `killed rank ${rank} (pid ${pid})\n`;
    }
    if (said.kills < killsMax) arm();
  };
  const arm = () => {
    timer = setTimeout(strike, -mtbfMs * Math.log((below(1_000_000) + 1) / 1_000_001));
  };
  const listen = (text) => {
    for (const [, rank, , pid] of text.matchAll(BEGINS)) pids.set(Number(rank), Number(pid));
    if (timer === undefined && pids.size === ranks && killsMax > 0) arm();
  };
  const variables = { ...mca, ft: 'on', ft_spares: String(spares) };
  const settings = Object.fromEntries(Object.entries(variables).map(([name, value]) => [`MULTIRAIL_MCA_${name}`, value]));
  const commands = await STARTERS[starter](ranks + spares);
  await Promise.all(
    commands.map(
      ({ command, env }) =>
        new Promise((resolve) => {
          const child = spawn(command[0], [...command.slice(1), ...program], {
            stdio: ['ignore', 'pipe', 'pipe'],
            env: { ...process.env, ...settings, ...env },
          });
          for (const name of ['stdout', 'stderr'])
            child[name].setEncoding('utf8').on('data', (text) => {
              said[name] += text;
              if (name === 'stderr') listen(said.stderr);
            });
          endAfter(child, limitMs, () => {
            said.hung = true;
          });
          child.on('error', (error) => {
            said.stderr += `${command[0]}: ${error.message}\n`;
            resolve();
          });
          child.on('close', (code, signal) => {
            said.ended = signal ?? `exit code ${code}`;
            resolve();
          });
        }),
    ),
  );
  clearTimeout(timer);
  return said;
}
