// CPU of ranks that do nothing: rails open over loopback, a receive posted, no traffic. Read from /proc, twice.
// Imports the lab, the files of this folder, node: modules.
import { readdirSync, readFileSync } from 'node:fs';
import { Lab, sleep } from '../../tools/lab/lab.ts';
import { DEFAULT_SPEC, Job } from './measured-job.ts';
import { type CommonOptions, Report } from './report.ts';
import { digits } from './stats.ts';

export interface IdleOptions extends CommonOptions {
  rails: number;
  seconds: number;
  settleSeconds: number;
  /** Rank 1 waits in a blocking call. */
  sync?: boolean;
}

/** Linux has fixed what it tells user space to a hundred ticks a second. */
const TICKS_PER_SECOND = 100;
const TARGET_PERCENT = 0.5;

interface CpuUse {
  /** utime + stime of /proc/PID/stat: ticks of 10 ms. */
  statMs: number;
  /** Sum of the threads' run times, which the scheduler counts in nanoseconds; NaN where the kernel does not tell. */
  schedMs: number;
  wakeups: number;
}

export function cpuUseOf(pid: number): CpuUse {
  // The command's name may hold spaces; it ends with the last bracket.
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8')
    .replace(/^.*\) /s, '')
    .split(' ');
  let schedNs = 0;
  let wakeups = 0;
  for (const thread of readdirSync(`/proc/${pid}/task`)) {
    const folder = `/proc/${pid}/task/${thread}`;
    try {
      schedNs += Number(readFileSync(`${folder}/schedstat`, 'utf8').split(' ')[0]);
    } catch {
      schedNs = Number.NaN;
    }
    wakeups += Number(/^voluntary_ctxt_switches:\s*(\d+)/m.exec(readFileSync(`${folder}/status`, 'utf8'))?.[1] ?? Number.NaN);
  }
  return { statMs: ((Number(fields[11]) + Number(fields[12])) * 1000) / TICKS_PER_SECOND, schedMs: schedNs / 1e6, wakeups };
}

export async function idle(options: IdleOptions): Promise<number> {
  const { rails, seconds, settleSeconds, minutes } = options;
  if (seconds + settleSeconds + 15 > minutes * 60) throw new Error('--minutes is less than what is to be measured');
  const report = new Report('idle', options);
  await using lab = await Lab.create({ nodes: 1, rails: [{}], congestionControl: options.congestionControl });
  const job = await Job.start({
    lab,
    nodes: [0, 0],
    mca: { btl: 'self,tcp', btl_tcp_if_include: 'lo', btl_tcp_links: String(rails), ...options.mca },
    spec: { ...DEFAULT_SPEC, traffic: options.sync === true ? 'idle-sync' : 'idle', rails },
  });
  report.say(`${rails} rails are up; settling for ${settleSeconds} s, then measuring for ${seconds} s`);
  await sleep(settleSeconds * 1000);
  const fromMs = performance.now();
  const before = job.ranks.map(({ pid }) => cpuUseOf(pid));
  await sleep(seconds * 1000);
  const ms = performance.now() - fromMs;
  const after = job.ranks.map(({ pid }) => cpuUseOf(pid));
  const wrong = await job.stop();
  const rows = job.ranks.map((rank, number) => {
    const statPercent = ((after[number].statMs - before[number].statMs) / ms) * 100;
    const schedPercent = ((after[number].schedMs - before[number].schedMs) / ms) * 100;
    const wakeupsPerSecond = (after[number].wakeups - before[number].wakeups) / (ms / 1000);
    const up = rank.done?.rails.filter(({ state, downs }) => state === 'UP' && downs === 0).length ?? 0;
    report.figure({ rank: number, ms, statPercent, schedPercent, wakeupsPerSecond, railsUp: up });
    const worst = Math.max(statPercent, Number.isNaN(schedPercent) ? 0 : schedPercent);
    return [
      String(number),
      String(up),
      digits(statPercent, 2),
      digits(schedPercent, 3),
      digits(wakeupsPerSecond),
      `≤ ${TARGET_PERCENT}: ${report.verdict(worst <= TARGET_PERCENT && up === rails)}`,
    ];
  });
  report.text(
    `Two ranks over loopback, btl_tcp_links ${rails}, a receive posted${options.sync === true ? ' (rank 1: recvSync)' : ''}, no traffic, over ${digits(ms / 1000)} s.`,
    '',
  );
  report.table(['rank', 'rails up', 'CPU %, /proc/PID/stat', 'CPU %, schedstat', 'wake-ups / s', 'target %'], rows);
  for (const text of wrong) report.text(`- ${text}: ${report.verdict(false)}`);
  return report.end();
}
