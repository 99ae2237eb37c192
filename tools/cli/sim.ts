// `multirail sim`: plays seeds of the simulator. One seed with its trace, or a range of them in several processes.
// Exit codes: 0 all is well, 1 the oracle found something, 2 the command line makes no sense.
import { fileURLToPath } from 'node:url';
import { type Command, InvalidArgumentError } from 'commander';
import { type CampaignResult, isWorker, PROFILES, type Profile, runCampaign, serveAsWorker } from '../sim/campaign.ts';

interface SimOptions {
  seed?: number;
  seeds?: { from: number; to: number };
  workers: number;
  profile: Profile;
  trace?: boolean;
  coverage?: boolean;
  failures: number;
  checkpoint?: string;
}

function parseWhole(text: string): number {
  if (!/^\d{1,15}$/.test(text)) throw new InvalidArgumentError('expected a whole number.');
  return Number(text);
}

function parseCount(text: string): number {
  const count = parseWhole(text);
  if (count < 1 || count > 1024) throw new InvalidArgumentError('expected a whole number from 1 to 1024.');
  return count;
}

function parseRange(text: string): { from: number; to: number } {
  const match = /^(\d{1,15})\.\.(\d{1,15})$/.exec(text);
  if (match === null || Number(match[2]) <= Number(match[1]))
    throw new InvalidArgumentError('expected FROM..TO, with TO above FROM; TO is not played.');
  return { from: Number(match[1]), to: Number(match[2]) };
}

function parseProfile(text: string): Profile {
  if (!(text in PROFILES)) throw new InvalidArgumentError(`expected one of ${Object.keys(PROFILES).join(', ')}.`);
  return text as Profile;
}

export function register(program: Command): void {
  program
    .command('sim')
    .description('play random failures of rails against the protocol, on simulated rails and a simulated clock')
    .option('--seed <n>', 'play this seed and report what happened', parseWhole)
    .option('--seeds <from..to>', 'play all these seeds (TO is not played; default 0..1000)', parseRange)
    .option('--profile <name>', `how a seed is played: ${Object.keys(PROFILES).join(' or ')}`, parseProfile, 'swarm')
    .option('--workers <n>', 'processes that play a range', parseCount, 2)
    .option('--trace', 'with --seed: print everything that happens, virtual microseconds first')
    .option('--coverage', 'print how often each event met each state')
    .option('--failures <n>', 'stop a range after this many failures', parseCount, 1)
    .option('--checkpoint <file>', 'with --seeds: resume where this file says, and keep the file up to date')
    .action(async (options: SimOptions) => {
      // A worker of a campaign is this same command, started by campaign.ts; it ends with its parent's word.
      if (isWorker()) return new Promise<never>(() => serveAsWorker());
      process.exitCode = options.seed === undefined ? await playRange(options) : await playOne(options, options.seed);
    });
}

const out = (text: string) => void process.stdout.write(`${text}\n`);

function totals(record: Readonly<Record<string, number | undefined>>): string {
  const list = Object.entries(record).filter(([, value]) => (value ?? 0) > 0);
  return list.length === 0 ? 'none' : list.map(([name, value]) => `${name} ${value}`).join(', ');
}

function command(options: SimOptions, seed: number): string {
  return `multirail sim --profile ${options.profile} --seed ${seed} --trace`;
}

async function playOne(options: SimOptions, seed: number): Promise<number> {
  const { Coverage } = await import('../sim/coverage.ts');
  const coverage = options.coverage === true ? new Coverage() : undefined;
  try {
    const report = PROFILES[options.profile](seed, {
      hashTrace: true,
      ...(options.trace === true ? { trace: out } : {}),
      ...(coverage === undefined ? {} : { coverage }),
    });
    out(`seed ${seed}: ${report.description}`);
    out(
      `messages ${report.messages}, events ${report.events}, virtual time ${report.virtualMs.toFixed(1)} ms, trace hash ${report.traceHash}`,
    );
    out(`faults: ${totals(report.faults)}`);
    out(`counters: ${totals(report.counters)}`);
    if (coverage !== undefined) out(coverage.format());
    return 0;
  } catch (error) {
    out(`seed ${seed} FAILED: ${error instanceof Error ? error.message : String(error)}`);
    if (options.trace !== true) out(`see what happened: ${command(options, seed)}`);
    return 1;
  }
}

async function playRange(options: SimOptions): Promise<number> {
  const { from, to } = options.seeds ?? { from: 0, to: 1000 };
  const isTerminal = process.stderr.isTTY === true;
  let shownAt = 0;
  const show = (state: CampaignResult, last: boolean) => {
    const now = performance.now();
    if (!last && now - shownAt < (isTerminal ? 500 : 10_000)) return;
    shownAt = now;
    const rate = (state.seeds / Math.max(1, state.elapsedMs)) * 1000;
    const line = `${state.seeds} of ${to - from} seeds, ${rate.toFixed(0)} per second, ${state.events} events, ${state.failures.length} failures`;
    process.stderr.write(isTerminal ? `\r${line}${last ? '\n' : ' '}` : `${line}\n`);
  };
  const script = options.workers > 1 ? fileURLToPath(import.meta.url) : undefined;
  const result = await runCampaign(
    {
      profile: options.profile,
      from,
      to,
      workers: options.workers,
      failuresMax: options.failures,
      coverage: options.coverage === true,
      onProgress: (state) => show(state, false),
      ...(options.checkpoint === undefined ? {} : { checkpoint: options.checkpoint }),
    },
    script,
  );
  show(result, true);
  const perSeed = (value: number) => (value / Math.max(1, result.seeds)).toFixed(1);
  out(
    `${result.seeds} seeds (${options.profile}), ${perSeed(result.messages)} messages and ${perSeed(result.events)} events each, ${(result.virtualMs / 3_600_000).toFixed(2)} hours of virtual time, ${(result.elapsedMs / 1000).toFixed(1)} s`,
  );
  out(`faults: ${totals(result.faults)}`);
  out(`counters: ${totals(result.counters)}`);
  if (result.coverage !== undefined) out(result.coverage.format());
  for (const { seed, message } of result.failures) {
    out(`seed ${seed} FAILED: ${message}`);
    out(`  ${command(options, seed)}`);
  }
  if (result.failures.length === 0) out('the oracle found nothing');
  return result.failures.length === 0 ? 0 : 1;
}
