// The state of a job as metrics: the text format of Prometheus 0.0.4, or OpenMetrics 1.0.0, which differ in the names of counters' families
// and in the last line. Labels are rank, peer, rail and transport everywhere, and type or state where one metric counts several things.
import { CARRYING, RAIL_STATES, type RailState } from '../../src/bml/rail.ts';
import { RAIL_COUNTERS, type RailCounterName, SAVE_COUNTERS } from '../../src/launch/oob/telemetry.ts';
import { PML_COUNTERS, type PmlCounterName } from '../../src/pml/counters.ts';
import type { RailView, RankView } from './messages.ts';
import type { JobModel } from './model.ts';

export const PROMETHEUS_TYPE = 'text/plain; version=0.0.4; charset=utf-8';
export const OPENMETRICS_TYPE = 'application/openmetrics-text; version=1.0.0; charset=utf-8';
export type MetricsFormat = 'prometheus' | 'openmetrics';

/** Which of the two an Accept header asks for. */
export const formatFor = (accept: string | undefined): MetricsFormat =>
  accept !== undefined && /application\/openmetrics-text/i.test(accept) ? 'openmetrics' : 'prometheus';

type Labels = Readonly<Record<string, string | number>>;

class MetricsText {
  private readonly lines: string[] = [];
  private readonly format: MetricsFormat;

  constructor(format: MetricsFormat) {
    this.format = format;
  }

  /** Without samples a family is left out. `name` of a counter is without _total. */
  family(name: string, type: 'counter' | 'gauge', help: string, samples: Iterable<readonly [Labels, number]>): void {
    const sampleName = type === 'counter' ? `${name}_total` : name;
    const familyName = this.format === 'openmetrics' ? name : sampleName;
    let isFirst = true;
    for (const [labels, value] of samples) {
      if (isFirst) this.lines.push(`# HELP ${familyName} ${escapeHelp(help)}`, `# TYPE ${familyName} ${type}`);
      isFirst = false;
      const pairs = Object.entries(labels).map(([label, text]) => `${label}="${escapeLabel(String(text))}"`);
      this.lines.push(`${sampleName}${pairs.length === 0 ? '' : `{${pairs.join(',')}}`} ${value}`);
    }
  }

  toString(): string {
    if (this.format === 'openmetrics') this.lines.push('# EOF');
    return `${this.lines.join('\n')}\n`;
  }
}

const escapeHelp = (text: string): string => text.replace(/\\/g, '\\\\').replace(/\n/g, '\\n').replace(/"/g, "'");
const escapeLabel = (text: string): string => text.replace(/\\/g, '\\\\').replace(/\n/g, '\\n').replace(/"/g, '\\"');
/** bytesResent → bytes_resent */
export const snakeCase = (name: string): string => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);

/** payloadBytesSent → payload_sent_bytes: a unit stands last. */
const RAIL_METRICS: Readonly<Record<RailCounterName, string>> = {
  payloadBytesSent: 'payload_sent_bytes',
  payloadBytesReceived: 'payload_received_bytes',
  bytesSent: 'sent_bytes',
  bytesReceived: 'received_bytes',
  framesSent: 'frames_sent',
  framesReceived: 'frames_received',
  framesRefused: 'frames_refused',
  framesInDoubt: 'frames_in_doubt',
  ups: 'ups',
  downs: 'downs',
  suspicions: 'suspicions',
  connectAttempts: 'connect_attempts',
};

export function metricsText(model: JobModel, format: MetricsFormat): string {
  const text = new MetricsText(format);
  jobMetrics(text, model);
  rankMetrics(text, model);
  railMetrics(
    text,
    [...model.rails.values()].map(({ view }) => view),
  );
  text.family(
    'multirail_events',
    'counter',
    'Events of the job by type, as in /events.',
    model.log.totals().map(({ type, rank, count }) => [{ ...(rank === undefined ? {} : { rank }), type }, count] as const),
  );
  return text.toString();
}

function jobMetrics(text: MetricsText, { job }: JobModel): void {
  text.family('multirail_job_info', 'gauge', 'The job: always 1.', [[{ job: job.jobId, version: job.version }, 1]]);
  text.family('multirail_job_ranks', 'gauge', 'Ranks of the job.', [[{}, job.size]]);
  text.family('multirail_job_running', 'gauge', '1 while the job runs, 0 once it has ended.', [[{}, job.ended === undefined ? 1 : 0]]);
  text.family('multirail_job_start_time_seconds', 'gauge', 'When the job was started, in seconds since 1970.', [
    [{}, Date.parse(job.startedAt) / 1000],
  ]);
}

function rankMetrics(text: MetricsText, model: JobModel): void {
  const ranks = model.ranks.map(({ view }) => view);
  const now = model.nowMs();
  const isPhase = (phase: string) => ranks.map((view) => [{ rank: view.rank }, view.phase === phase ? 1 : 0] as const);
  text.family('multirail_rank_joined', 'gauge', '1 while the rank is in the job.', isPhase('JOINED'));
  if (model.job.survivesFailures)
    text.family(
      'multirail_rank_died',
      'gauge',
      '1 once the process has died, and the others go on.',
      ranks.map((view) => [{ rank: view.rank }, view.died ? 1 : 0] as const),
    );
  if (model.job.spares > 0)
    text.family(
      'multirail_rank_standby',
      'gauge',
      '1 while the process stands by.',
      ranks.map((view) => [{ rank: view.rank }, view.place === null && view.phase === 'JOINED' ? 1 : 0] as const),
    );
  text.family('multirail_rank_exited', 'gauge', "1 once the rank's process has ended.", isPhase('EXITED'));
  text.family(
    'multirail_rank_report_age_seconds',
    'gauge',
    'Age of the last report. A rank that computes without turning its event loop sends none.',
    ranks.filter(({ heardMs }) => heardMs >= 0).map(({ rank, heardMs }) => [{ rank }, Math.max(0, now - heardMs) / 1000] as const),
  );
  text.family(
    'multirail_rank_retained_bytes',
    'gauge',
    'Copies of eager messages that are not delivered yet.',
    ranks.filter(({ heardMs }) => heardMs >= 0).map(({ rank, retainedBytes }) => [{ rank }, retainedBytes] as const),
  );
  saveMetrics(text, ranks);
  for (const [name, help] of Object.entries(PML_COUNTERS) as [PmlCounterName, string][]) {
    const samples = ranks
      .filter(({ counters }) => counters[name] !== undefined)
      .map(({ rank, counters }) => [{ rank }, counters[name]] as const);
    text.family(`multirail_pml_${snakeCase(name)}`, 'counter', help, samples);
  }
}

/** What multirail/ft counts; nothing where no program runs under it. */
function saveMetrics(text: MetricsText, ranks: readonly RankView[]): void {
  const samples = (value: (counters: RankView['counters']) => number | undefined) =>
    ranks.flatMap(({ rank, counters }) => {
      const one = value(counters);
      return one === undefined ? [] : [[{ rank }, one] as const];
    });
  for (const [name, { grows, text: help }] of Object.entries(SAVE_COUNTERS))
    text.family(
      `multirail_${snakeCase(name)}`,
      grows ? 'counter' : 'gauge',
      help,
      samples((counters) => counters[name]),
    );
  text.family(
    'multirail_ft_useful_ratio',
    'gauge',
    'Share of the time that was spent in steps that have not been lost (ETTR).',
    samples(({ ftUsefulMs, ftElapsedMs }) => (ftUsefulMs === undefined || !(ftElapsedMs > 0) ? undefined : ftUsefulMs / ftElapsedMs)),
  );
}

function railMetrics(text: MetricsText, rails: readonly RailView[]): void {
  const labels = ({ rank, peer, rail, transport }: RailView): Labels => ({ rank, peer, rail, transport });
  const gauge = (name: string, help: string, value: (view: RailView) => number) =>
    text.family(
      name,
      'gauge',
      help,
      rails.map((view) => [labels(view), value(view)] as const),
    );
  gauge(
    'multirail_rail_up',
    '1 while the rail carries traffic, or would if no better one did (UP, SUSPECT or TRIAL), as this rank sees it.',
    ({ state }) => (CARRYING.has(state as RailState) ? 1 : 0),
  );
  text.family(
    'multirail_rail_state',
    'gauge',
    '1 for the state that the rail is in, 0 for the others.',
    rails.flatMap((view) => Object.keys(RAIL_STATES).map((state) => [{ ...labels(view), state }, view.state === state ? 1 : 0] as const)),
  );
  gauge('multirail_rail_epoch', 'The live epoch of the rail, 0 when none is.', ({ epoch }) => epoch);
  gauge('multirail_rail_standby', '1 for a rail that only works when no other one does.', ({ standby }) => (standby ? 1 : 0));
  gauge('multirail_rail_outstanding_bytes', 'Bytes that were sent and are not known to be delivered.', (view) => view.outstandingBytes);
  gauge(
    'multirail_rail_measured_bytes_per_second',
    'What the rail was measured to carry; 0 until then.',
    (view) => view.measuredBytesPerSecond,
  );
  for (const [name, metric] of Object.entries(RAIL_METRICS) as [RailCounterName, string][]) {
    const samples = rails.map((view) => [labels(view), view.counters[name] ?? 0] as const);
    text.family(`multirail_rail_${metric}`, 'counter', RAIL_COUNTERS[name], samples);
  }
}
