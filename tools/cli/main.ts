#!/usr/bin/env node
// The `multirail` command. Each subcommand is in a file that exports register(program); COMMANDS lists them.
import { Command, CommanderError } from 'commander';
import { MultirailError } from '../../src/errors.ts';
import * as bench from './bench.ts';
import * as cc from './cc.ts';
import * as conformance from './conformance.ts';
import * as demo from './demo.ts';
import * as ft from './ft.ts';
import * as hpl from './hpl.ts';
import * as info from './info.ts';
import * as lab from './lab.ts';
import * as rendezvous from './rendezvous.ts';
import * as run from './run.ts';
import * as sim from './sim.ts';
import { packageVersion } from './version.ts';

const COMMANDS: readonly { register(program: Command): void }[] = [run, cc, rendezvous, bench, hpl, ft, lab, demo, info, sim, conformance];

async function main(args: string[]): Promise<void> {
  const program = new Command('multirail')
    .description('messages between Node.js ranks over several rails, none of which needs to survive')
    .version(packageVersion(), '-V, --version')
    .enablePositionalOptions()
    .exitOverride()
    .configureOutput({ outputError: (text, write) => write(text.replace(/^error: /, 'multirail: ')) });
  for (const command of COMMANDS) command.register(program);
  try {
    await program.parseAsync(run.expandMca(program, args), { from: 'user' });
  } catch (error) {
    process.exitCode = report(error);
  }
}

/** Prints an error for people and gives the exit code. */
function report(error: unknown): number {
  // Commander has printed its own message, or the help or version that was asked for.
  if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : run.USAGE_EXIT_CODE;
  process.stderr.write(`multirail: ${run.messageOf(error)}\n`);
  const debug = process.env.MULTIRAIL_DEBUG;
  if (debug !== undefined && debug !== '' && error instanceof Error) process.stderr.write(`${error.stack}\n`);
  const isUsage = error instanceof MultirailError && (error.code === 'ERR_ARG' || error.code === 'ERR_CONFIG');
  return isUsage ? run.USAGE_EXIT_CODE : 1;
}

await main(process.argv.slice(2));
// What a job leaves open (an input that nobody reads to its end) must not keep the command alive.
process.exit();
