// False alarms: nothing is wrong with the rails, only with the time that their ends have. A receiver that computes, a process that is
// stopped, busy processes on every core: no rail may be lost. Imports the lab, the files of this folder.
import { cpus } from 'node:os';
import { Lab, sleep } from '../../tools/lab/lab.ts';
import { DEFAULT_SPEC, Job } from './measured-job.ts';
import type { RankSpec } from './protocol.ts';
import { Budget, type CommonOptions, Report } from './report.ts';
import { digits } from './stats.ts';

export interface AlarmsOptions extends CommonOptions {
  computeMs: number;
  stopMs: number;
  busyMs: number;
  only: string[];
  over: string[];
}

interface Scenario {
  kind: string;
  text: string;
  ms: number;
  spec: Partial<RankSpec> & Pick<RankSpec, 'traffic'>;
  /** Runs while the traffic flows; the traffic must flow again after it. */
  during(lab: Lab, job: Job, ms: number): Promise<void>;
}

/** 64 messages of 1 MiB under way fill every window and socket buffer. */
const FULL: Scenario['spec'] = { traffic: 'bulk', window: 64 };
const BUSY_LOOP = 'for (;;);';
const SETTLE_MS = 2000;
const PROGRESS_EVERY_MS = 15_000;
/** Over the given time: start, settling, end. */
const OVERHEAD_MS = 12_000;
const COMPUTE_SLACK_MS = 30_000;

function stopOf(rank: number) {
  return async (_lab: Lab, job: Job, ms: number) => {
    const { pid } = job.ranks[rank];
    process.kill(pid, 'SIGSTOP');
    try {
      await sleep(ms);
    } finally {
      process.kill(pid, 'SIGCONT');
    }
  };
}

async function besideBusyProcesses(lab: Lab, job: Job, ms: number): Promise<void> {
  const hogs = cpus().map(() => lab.spawn(0, [process.execPath, '-e', BUSY_LOOP], { stdio: 'ignore' }));
  try {
    const before = job.ranks.map((rank) => rank.delivered);
    const until = performance.now() + ms;
    while (performance.now() < until) {
      await sleep(Math.min(PROGRESS_EVERY_MS, until - performance.now()));
      if (hogs.some((hog) => hog.exitCode !== null || hog.signalCode !== null)) throw new Error('a busy process ended before its time');
    }
    // Ranks that never got to run would lose no rail either, and prove nothing.
    await job.until('a delivery beside busy processes', () => job.ranks.some((rank, i) => rank.delivered > before[i]), 10_000);
  } finally {
    for (const hog of hogs) hog.kill('SIGKILL');
  }
}

function scenarios({ computeMs, stopMs, busyMs }: AlarmsOptions): Scenario[] {
  return [
    {
      kind: 'compute',
      text: 'the receiver computes, windows full',
      ms: computeMs,
      spec: FULL,
      during: async (_lab, job, ms) => {
        job.send(1, { type: 'compute', ms });
        await job.until('the receiver to have computed', () => job.ranks[1].computedAt > 0, ms + COMPUTE_SLACK_MS);
      },
    },
    { kind: 'stop', text: 'SIGSTOP of the sender', ms: stopMs, spec: FULL, during: stopOf(0) },
    { kind: 'stop', text: 'SIGSTOP of the receiver', ms: stopMs, spec: FULL, during: stopOf(1) },
    {
      kind: 'busy',
      text: 'a busy process on each core, 8 B every 20 ms',
      ms: busyMs,
      spec: { traffic: 'pingpong', pauseMs: 20 },
      during: besideBusyProcesses,
    },
    {
      kind: 'busy',
      text: 'a busy process on each core, 1 MiB, 16 under way',
      ms: busyMs,
      spec: { traffic: 'bulk' },
      during: besideBusyProcesses,
    },
  ];
}

interface Place {
  text: string;
  make(congestionControl: string | undefined): Promise<Lab>;
  nodes: [number, number];
  mca: Record<string, string>;
}

const PLACES: Record<string, Place> = {
  loopback: {
    text: 'loopback, 2 links',
    make: (congestionControl) => Lab.create({ nodes: 1, rails: [{}], congestionControl }),
    nodes: [0, 0],
    mca: { btl: 'self,tcp', btl_tcp_if_include: 'lo', btl_tcp_links: '2' },
  },
  rails: {
    text: '2 rails of 1 Gbit/s',
    make: (congestionControl) => Lab.create({ nodes: 2, rails: [{ mbit: 1000 }, { mbit: 1000 }], congestionControl }),
    nodes: [0, 1],
    mca: { btl: 'self,tcp' },
  },
};

export async function alarms(options: AlarmsOptions): Promise<number> {
  const report = new Report('alarms', options);
  const budget = new Budget(options.minutes);
  const todo = options.over.flatMap((place) =>
    scenarios(options)
      .filter(({ kind }) => options.only.includes(kind))
      .map((scenario) => ({ place: PLACES[place], scenario })),
  );
  const totalMs = todo.reduce((sum, { scenario }) => sum + scenario.ms + OVERHEAD_MS, 0);
  let doneMs = 0;
  const rows: string[][] = [];
  for (const { place, scenario } of todo) {
    const head = [place.text, scenario.text, `${scenario.ms / 1000} s`];
    if (!budget.has(scenario.ms + OVERHEAD_MS)) {
      report.say(`left out, the time is up: ${head.join(', ')}`);
      rows.push([...head, 'not run', '', '', '', report.verdict(false)]);
      continue;
    }
    report.say(`${head.join(', ')} …  ${budget.eta(doneMs, totalMs)}`);
    const figure = await runScenario(place, scenario, options);
    doneMs += scenario.ms + OVERHEAD_MS;
    report.figure({ place: place.text, scenario: scenario.text, ms: scenario.ms, ...figure });
    const isGood = figure.lost === 0 && figure.wrong.length === 0;
    report.say(
      `   rails lost ${figure.lost}, suspected ${figure.suspected}, messages ${figure.messages}, ${figure.wrong.join('; ') || 'audit sound'}`,
    );
    for (const event of figure.events.slice(0, 10)) report.say(`   ${event}`);
    const audit = figure.wrong.length === 0 ? 'sound' : figure.wrong.join('; ').replaceAll('\n', ' ').slice(0, 300);
    rows.push([
      ...head,
      String(figure.lost),
      String(figure.suspected),
      digits(figure.resumedMs, 0),
      `${figure.messages.toLocaleString('en-US')}, ${audit}`,
      report.verdict(isGood),
    ]);
  }
  report.text('Resumed: from the end of the disturbance to the next delivery, in ms. Target: no rail lost, audit sound.', '');
  report.table(['over', 'disturbance', 'for', 'rails lost', 'suspected', 'resumed', 'messages', ''], rows);
  return report.end();
}

interface AlarmFigure {
  lost: number;
  suspected: number;
  messages: number;
  resumedMs: number;
  wrong: string[];
  events: string[];
}

async function runScenario(place: Place, scenario: Scenario, { mca, congestionControl }: AlarmsOptions): Promise<AlarmFigure> {
  await using lab = await place.make(congestionControl);
  const job = await Job.start({
    lab,
    nodes: place.nodes,
    mca: { ...place.mca, ...mca },
    spec: { ...DEFAULT_SPEC, rails: 2, ...scenario.spec },
  });
  const receiver = scenario.spec.traffic === 'pingpong' ? job.ranks[0] : job.ranks[1];
  const wrong: string[] = [];
  let resumedMs = Number.NaN;
  try {
    await sleep(SETTLE_MS);
    await scenario.during(lab, job, scenario.ms);
    const endAt = Number(process.hrtime.bigint()) / 1e6;
    await job.until('the traffic to flow again', () => receiver.lastAt > endAt, COMPUTE_SLACK_MS);
    resumedMs = receiver.lastAt - endAt;
    await sleep(SETTLE_MS);
    wrong.push(...(await job.stop()));
  } catch (error) {
    wrong.push((error as Error).message);
    await job.kill();
  }
  const events = job.ranks.flatMap((rank, number) =>
    rank.railEvents.map(({ event, key, reason }) => `rank ${number}: ${key} ${event}: ${reason}`),
  );
  // Both sides of one loss are one loss; what each side counted itself is the proof where events did not get through.
  const sides = job.ranks.map((rank) => ({
    lost: Math.max(rank.railEvents.filter(({ event }) => event === 'lost').length, sum(rank.done?.rails.map(({ downs }) => downs))),
    suspected: sum(rank.done?.rails.map(({ suspicions }) => suspicions)),
  }));
  return {
    lost: Math.max(...sides.map(({ lost }) => lost)),
    suspected: sum(sides.map(({ suspected }) => suspected)),
    messages: job.ranks[0].done?.sent ?? receiver.delivered,
    resumedMs,
    wrong,
    events,
  };
}

function sum(values: readonly number[] = []): number {
  return values.reduce((total, value) => total + value, 0);
}
