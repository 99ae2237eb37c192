// `multirail run`: starts the ranks of a job on this machine, or by ssh on others; `multirail agent` is its other end there. The file also
// has what other commands need to take `--mca NAME VALUE`.
import { readFileSync, realpathSync } from 'node:fs';
import { resolve } from 'node:path';
import { type Command, InvalidArgumentError, Option } from 'commander';
import { MultirailError } from '../../src/errors.ts';
import { serveAgent } from '../../src/launch/run/agent.ts';
import { type HostSlots, parseHostfile, parseHosts, slotsOf } from '../../src/launch/run/hostfile.ts';
import type { JobResult } from '../../src/launch/run/job-result.ts';
import { type KillPlan, parseKillPlan } from '../../src/launch/run/kill-plan.ts';
import { RANKS_MAX } from '../../src/launch/run/launcher.ts';
import { watchNpm } from '../../src/launch/run/parent-watch.ts';
import { RESTARTS_MAX, runWithRelaunches, runWithRestarts } from '../../src/launch/run/restarts.ts';
import { parseFaults } from '../../src/mpi/replica/inject.ts';
import { ParamTable } from '../../src/params.ts';
import { PROCESSES_MAX } from '../../src/ulfm/limits.ts';
import { wholeNumber } from './bench.ts';
import { isWatched, runWatchedJob, type WatchOptions } from './watched-job.ts';

/** Exit code for a command line that makes no sense. */
export const USAGE_EXIT_CODE = 2;

/** `--mca NAME VALUE` as an option for any command whose arguments went through expandMca(). */
export function mcaOption(): Option {
  return new Option('--mca <name value>', 'set a parameter (multirail info --all lists them); may be repeated')
    .argParser((pair: string, previous: Record<string, string> | undefined) => {
      const equals = pair.indexOf('=');
      if (equals < 1) throw new InvalidArgumentError('expected --mca NAME VALUE.');
      const mca = { ...previous, [pair.slice(0, equals)]: pair.slice(equals + 1) };
      try {
        new ParamTable(mca);
      } catch (error) {
        throw new InvalidArgumentError(messageOf(error));
      }
      return mca;
    })
    .default({}, 'none');
}

export interface WatchCommandOptions {
  dashboard?: number;
  dashboardHold?: boolean;
  dashboardTokenFile?: string;
  events?: string;
}

/** `--dashboard [PORT]` and what belongs to it, for any command whose arguments went through expandMca(). */
export function watchOptions(): Option[] {
  return [
    new Option('--dashboard [port]', 'serve a page that shows the rails while the job runs, on loopback; its address is printed')
      .argParser(parsePort)
      .preset('0'),
    new Option('--dashboard-hold', 'keep the page after the job has ended, until Ctrl-C'),
    new Option('--dashboard-token-file <file>', "read the page's token from this file, instead of making a new one"),
    new Option('--events <file>', 'write what happens to ranks and rails to this file, as JSON lines'),
  ];
}

export function watchOf({ dashboard, dashboardHold, dashboardTokenFile, events }: WatchCommandOptions): WatchOptions {
  return { port: dashboard, hold: dashboardHold ?? false, tokenFile: dashboardTokenFile, eventsFile: events };
}

/**
 * Joins `--mca NAME VALUE` to `--mca NAME=VALUE`, since an option takes one word, and gives an option whose number may be left out (one
 * with a preset, such as `--dashboard`) that preset, since the next word would be taken otherwise. Only the command's own options are
 * looked at: everything from the program's name or `--` on belongs to the program. `args` begins with the command's name, and with that
 * of its own command where it has some (`lab run`).
 */
export function expandMca(program: Command, args: readonly string[]): string[] {
  let command = program;
  let at = 0;
  for (;;) {
    const next: Command | undefined = command.commands.find((candidate) => candidate.name() === args[at]);
    if (next === undefined) break;
    command = next;
    at++;
  }
  if (at === 0) return [...args];
  const takesWord = new Set<string>();
  const presets = new Map<string, unknown>();
  for (const option of command.options) {
    if (option.optional && option.long !== undefined && option.presetArg !== undefined) presets.set(option.long, option.presetArg);
    if (!option.required) continue;
    if (option.short !== undefined) takesWord.add(option.short);
    if (option.long !== undefined) takesWord.add(option.long);
  }
  const out = args.slice(0, at);
  while (at < args.length && args[at].startsWith('-') && args[at] !== '--') {
    let word = args[at++];
    // A number that may be left out: the name of the program is not one.
    if (presets.has(word)) word += `=${/^\d+$/.test(args[at] ?? '') ? args[at++] : presets.get(word)}`;
    out.push(word);
    if (!takesWord.has(word) || at >= args.length) continue;
    const value = args[at++];
    if (word === '--mca' && !value.includes('=') && at < args.length) out.push(`${value}=${args[at++]}`);
    else out.push(value);
  }
  return [...out, ...args.slice(at)];
}

/** The message of an error as a person reads it: without the code in front. */
export function messageOf(error: unknown): string {
  if (error instanceof MultirailError) return error.message.slice(error.code.length + 2);
  return error instanceof Error ? error.message : String(error);
}

const parseCount = wholeNumber(1, RANKS_MAX);
/** More deaths than that are a mistake of the program, or of the machine. */
const RESPAWNS_DEFAULT = 100;

function parsePort(text: string): number {
  const port = /^\d{1,5}$/.test(text) ? Number(text) : Number.NaN;
  if (!(port <= 65535)) throw new InvalidArgumentError('expected a port from 1 to 65535, or 0 for any free one.');
  return port;
}

function parseKill(text: string): KillPlan {
  try {
    return parseKillPlan(text);
  } catch (error) {
    throw new InvalidArgumentError(`${messageOf(error)}.`);
  }
}

function parseStdin(text: string): number | 'all' | 'none' {
  if (text === 'all' || text === 'none') return text;
  if (!/^\d{1,9}$/.test(text)) throw new InvalidArgumentError('expected all, none or a rank.');
  return Number(text);
}

function parseInject(text: string): string {
  try {
    parseFaults(text);
    return text;
  } catch (error) {
    throw new InvalidArgumentError(`${messageOf(error)}.`);
  }
}

/** `relaunch` or `relaunch:N`. */
function parseRelaunch(text: string): number {
  const [, count = '1'] = /^relaunch(?::(\d{1,4}))?$/.exec(text) ?? [];
  if (!text.startsWith('relaunch') || !/^relaunch(:\d{1,4})?$/.test(text) || Number(count) < 1)
    throw new InvalidArgumentError('expected relaunch or relaunch:N.');
  return Number(count);
}

const collect = (value: string, previous: string[]) => [...previous, value];

/** `NAME` or `NAME=VALUE`, as mpirun takes it. */
function collectExport(text: string, previous: Record<string, string | undefined>): Record<string, string | undefined> {
  const equals = text.indexOf('=');
  const name = equals < 0 ? text : text.slice(0, equals);
  if (!/^[A-Za-z_]\w*$/.test(name)) throw new InvalidArgumentError('expected NAME or NAME=VALUE.');
  return { ...previous, [name]: equals < 0 ? undefined : text.slice(equals + 1) };
}

function hostsOf(options: RunCommandOptions): HostSlots[] | undefined {
  if (options.hosts !== undefined && options.hostfile !== undefined) {
    throw new MultirailError('ERR_ARG', '--hosts and --hostfile both name the hosts: give one of them');
  }
  if (options.hosts !== undefined) return parseHosts(options.hosts);
  if (options.hostfile === undefined) return undefined;
  let text: string;
  try {
    text = readFileSync(options.hostfile, 'utf8');
  } catch (error) {
    throw new MultirailError('ERR_ARG', `--hostfile: ${messageOf(error)}`, { cause: error });
  }
  return parseHostfile(text, options.hostfile);
}

interface RunCommandOptions extends WatchCommandOptions {
  np: number | undefined;
  hosts: string | undefined;
  hostfile: string | undefined;
  export: Record<string, string | undefined>;
  mca: Record<string, string>;
  nodeArg: string[];
  stdin: number | 'all' | 'none';
  prefix: boolean;
  abortOnFailure: boolean;
  kill: KillPlan | undefined;
  spares: number | undefined;
  respawn: number | undefined;
  rendezvous: string | undefined;
  replicas: number;
  onDiverged: number;
  onReplicaDeath: number;
  replicaPlace?: 'host' | 'core';
  inject: string | undefined;
  restarts: number;
  oobListen: string[];
}

export function register(program: Command): void {
  const run = program
    .command('run')
    .description('run a program as the ranks of a job on this machine')
    .usage('-n N [options] [--] program [arguments...]')
    .argument('<program...>', 'what each rank runs; .js, .mjs, .cjs and .ts files run in Node')
    .option('-n, --np <N>', 'number of ranks; with hosts, by default all their slots', parseCount)
    .option('--hostfile <file>', 'hosts with their slots, one per line: "host slots=2" or "host:2"; reached by ssh')
    .option('-H, --hosts <list>', 'the same as a list: a:2,b:2')
    .addOption(
      new Option('-x, --export <name[=value]>', 'a variable of the environment for ranks on other hosts; may be repeated')
        .argParser(collectExport)
        .default({}, 'none'),
    )
    .addOption(mcaOption())
    .addOption(
      new Option('--node-arg <argument>', 'an argument for Node itself, such as --node-arg=--inspect; may be repeated')
        .argParser(collect)
        .default([], 'none'),
    )
    .option('--stdin <target>', 'who gets the standard input: a rank, all or none', parseStdin, 0)
    .option('--no-prefix', 'do not put [rank] before each line of output')
    .option('--no-abort-on-failure', 'let the other ranks go on when one fails; implied by --mca ft on, --spares and --respawn')
    .option('--spares <K>', 'K more processes, which stand by to take the places of ranks that die; implies --mca ft on', parseCount)
    .addOption(
      new Option(
        '--respawn [MAX]',
        `start a process that stands by for each one that dies, at most MAX (${RESPAWNS_DEFAULT}) in all; replace() waits for it; implies --mca ft on`,
      )
        .preset(String(RESPAWNS_DEFAULT))
        .argParser(wholeNumber(1, PROCESSES_MAX)),
    )
    .option(
      '--replicas <R>',
      'so many processes for each rank, 1 to 3: they compare what they send, and nothing that differs leaves; of 3, two that agree are right',
      wholeNumber(1, 3),
      1,
    )
    .addOption(
      new Option(
        '--replica-place <place>',
        'the processes of a rank: on different hosts, or on the same one (default: different ones, if there are)',
      ).choices(['host', 'core']),
    )
    .option(
      '--inject <plan>',
      'faults on purpose: flip:rank=1,replica=shadow,send=5 or at=50%,buffer=NAME; stall:…; exit:…; shadow2 is the second one',
      parseInject,
    )
    .option('--on-diverged <action>', 'when replicas differ: relaunch[:N] starts the job again, at most N times', parseRelaunch, 0)
    .option(
      '--on-replica-death <action>',
      'when a replica has died: relaunch[:N] starts the job again with all of them, behind its next save on a disk or in a store',
      parseRelaunch,
      0,
    )
    .option('--rendezvous <file>', 'say in this file where processes may join that are started by hand (--mca ft_join standby)')
    .option(
      '--restarts <N>',
      'start the whole job again, at most N times, when it failed because ranks died; with saves on disk or in a store it goes on from the newest',
      wholeNumber(0, RESTARTS_MAX),
      0,
    )
    .option(
      '--kill <plan>',
      'kill ranks: RANK@TIME[,…], #PROCESS@TIME or random:seed=S,mtbf=T,max=N; times count from when all ranks have met',
      parseKill,
    )
    .addOption(
      new Option('--oob-listen <address>', 'listen here for the ranks, instead of on loopback; may be repeated')
        .argParser(collect)
        .default([], 'none'),
    )
    .passThroughOptions()
    .addHelpText(
      'after',
      `
Examples:
  multirail run -n 4 app.js                          four ranks of app.js
  multirail run -n 2 --mca btl tcp,self app.js --x   parameters come before the program, its own arguments after it
  multirail run -n 4 --node-arg=--inspect=0 app.ts   an inspector for every rank
  multirail run --hosts node1:2,node2:2 app.js        two ranks on each of two hosts, by ssh
  multirail run -n 4 --stdin all -- ./solver in.txt  any other program; every rank gets the input
  multirail run -n 4 --mca ft on --kill 2@1s app.js   rank 2 dies after a second, and the others may go on
  multirail run -n 4 --spares 1 --kill 2@1s app.js    the same, and replace() finds a fifth process for its place
  multirail run -n 4 --respawn app.js                 for each process that dies another one is started, for the next replace()
  multirail run -n 4 --mca ft on --restarts 3 app.js  when ranks die and the job with them, it starts again from its newest save
  multirail run -n 4 --replicas 2 app.js              eight processes; whatever a rank sends, two of them have made
  multirail run -n 4 --replicas 2 --on-replica-death relaunch app.js
                                                     behind its next save the job has two of each rank again
  multirail run -n 4 --replicas 3 app.js              twelve; one of the three may be wrong, and the job goes on
  multirail run -n 2 --dashboard --mca btl_fault manual --mca btl_tcp_links 2 app.js
                                                     a page that shows two rails, with buttons to pull them

The exit code is that of the first rank that failed, or 128 + the signal that killed it. With --mca ft on
ranks that die are no failure as long as others come to their end. 3: all went well, but for kills that
were asked for and could not be carried out. 75: the job was told to end by a signal, and has saved.
76: the replicas of a rank differ. 77: one has died, and the job has saved (ft_replica_renew).
A second Ctrl-C kills all ranks at once.`,
    )
    .action(async (words: string[], options: RunCommandOptions, command: Command) => {
      const hosts = hostsOf(options);
      if (options.np === undefined && hosts === undefined) {
        command.error("error: required option '-n, --np <N>' not specified (or name the hosts with --hosts or --hostfile)", {
          exitCode: USAGE_EXIT_CODE,
        });
      }
      // A program that reads the job's environment for a test or a wrapper gets its variables here as well as elsewhere.
      const exported = Object.entries(options.export).filter(([, value]) => value !== undefined);
      const job = {
        size: options.np ?? slotsOf(hosts ?? []),
        env: { ...process.env, ...Object.fromEntries(exported) },
        exportEnv: options.export,
        ...(hosts === undefined ? {} : { hosts }),
        agentProgram: realpathSync(process.argv[1]),
        command: words,
        mca: { ...options.mca, ...(options.inject === undefined ? {} : { ft_inject: options.inject }) },
        nodeArgs: options.nodeArg,
        stdinTo: options.stdin,
        prefix: options.prefix,
        abortOnFailure: options.abortOnFailure,
        forwardSignals: true,
        ...(options.kill === undefined ? {} : { kill: options.kill }),
        ...(options.spares === undefined ? {} : { spares: options.spares }),
        ...(options.replicas === 1 ? {} : { replicas: options.replicas }),
        ...(options.replicaPlace === undefined ? {} : { replicaPlace: options.replicaPlace }),
        ...(options.respawn === undefined ? {} : { respawn: options.respawn }),
        ...(options.rendezvous === undefined ? {} : { rendezvous: resolve(options.rendezvous) }),
        ...(options.oobListen.length === 0 ? {} : { oobListen: options.oobListen }),
      };
      const stop = watchNpm(process.env, () => {
        const { pid } = process;
        const text = `npm, which started this launcher, is gone; the job goes on: kill -TERM ${pid} ends it, kill -USR2 ${pid} tells who waits for whom`;
        process.stderr.write(`multirail: ${text}\n`);
      });
      const watch = watchOf(options);
      if (options.replicaPlace !== undefined && options.replicas === 1)
        throw new MultirailError('ERR_ARG', '--replica-place needs --replicas 2 or 3');
      const relaunches = { onDiverged: options.onDiverged, onDeath: options.onReplicaDeath };
      const isRelaunched = relaunches.onDiverged + relaunches.onDeath > 0;
      if (isRelaunched && (options.replicas === 1 || options.restarts > 0 || isWatched(watch)))
        throw new MultirailError(
          'ERR_ARG',
          `${relaunches.onDiverged > 0 ? '--on-diverged' : '--on-replica-death'} needs --replicas 2 or 3, and goes without --restarts, --dashboard and --events`,
        );
      if (options.restarts > 0 && isWatched(watch))
        throw new MultirailError(
          'ERR_ARG',
          '--restarts and --dashboard or --events: the page and the file are those of one job; give one of them',
        );
      const run = (): Promise<JobResult> => {
        if (isRelaunched) return runWithRelaunches(job, relaunches);
        return options.restarts > 0 ? runWithRestarts(job, options.restarts) : runWatchedJob(job, watch);
      };
      const result = await run().finally(stop);
      process.exitCode = result.exitCode;
    });
  for (const option of watchOptions()) run.addOption(option);
  program
    .command('agent', { hidden: true })
    .description('start ranks on this host for a launcher on another one; only `multirail run` uses it')
    .action(async () => {
      await serveAgent(process.stdin, process.stdout, (text) => process.stderr.write(`multirail: ${text}\n`));
      process.exit(0);
    });
}
