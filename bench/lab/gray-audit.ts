// `bench/lab.sh gray --audit`: faults drawn by a seed over drawn rails and traffics, without a judgement of figures. Nothing may be lost,
// doubled, reordered or damaged, nothing may stand still for 10 s, and a job that is told to end while its rails are bad ends within 10 s.
// Imports the lab, the generator, the files of the campaign and of the lab's measurements.
import { MultirailError } from '../../src/errors.ts';
import { Prng } from '../../src/util/prng.ts';
import { Lab, LabError } from '../../tools/lab/lab.ts';
import { GRAY_FAULTS, whyNotRun } from './gray-faults.ts';
import { GrayJob } from './gray-job.ts';
import { GRAY_TRAFFICS, type GrayPlant, type GrayTraffic } from './gray-protocol.ts';
import { OWN_TRANSPORTS, TOPOLOGIES, type Topology, TRANSPORTS, type Transport } from './gray-record.ts';
import { JobError } from './job.ts';
import { nowMs } from './protocol.ts';
import { type CommonOptions, Report } from './report.ts';
import { digits } from './stats.ts';

export interface GrayAuditOptions extends CommonOptions {
  /** Seed of the faults, over all jobs. */
  seed: number;
  plant?: GrayPlant | undefined;
  stop: AbortSignal;
}

interface Outcome {
  faults: number;
  messages: number;
  wrong: string[];
}

const HOLD_MS = { low: 200, high: 900 };
const PAUSE_MS = { low: 50, high: 300 };
/** One job of each: long messages, collectives, short messages. */
const TRAFFICS: readonly (readonly GrayTraffic[])[] = [['bulk', 'mixed'], ['allreduce'], ['small', 'pingpong']];

export async function grayAudit(options: GrayAuditOptions): Promise<number> {
  const { seed, minutes, stop, plant } = options;
  const report = new Report('gray-audit', options);
  report.say(`seed ${seed}: the same --seed draws the same rails, traffics and faults again`);
  const total: Outcome = { faults: 0, messages: 0, wrong: [] };
  // A planted mistake strikes a stream.
  const traffics = plant === undefined ? TRAFFICS : TRAFFICS.slice(0, 1);
  for (const [number, choice] of traffics.entries()) {
    if (stop.aborted) break;
    const chance = new Prng(`${seed}/audit/${number}`);
    const traffic = chance.pick(choice);
    const topology = chance.pick(Object.keys(TOPOLOGIES) as Topology[]);
    const transport = chance.pick<Transport>(OWN_TRANSPORTS);
    report.say(`${GRAY_TRAFFICS[traffic].text}; ${TOPOLOGIES[topology].text}; ${TRANSPORTS[transport].text}`);
    const outcome = await runJob(options, report, chance, { traffic, topology, transport, ms: (minutes * 60_000) / traffics.length });
    report.figure({ seed, traffic, topology, transport, ...outcome });
    total.faults += outcome.faults;
    total.messages += outcome.messages;
    total.wrong.push(...outcome.wrong.map((text) => `${traffic} over ${transport}: ${text}`));
  }
  for (const text of total.wrong) report.say(`WRONG: ${text}`);
  report.text(
    `Audit: ${total.faults} faults, ${total.messages} messages: ${report.verdict(total.wrong.length === 0 && total.messages > 0)}.`,
  );
  const code = report.end();
  report.say(`gray audit ${code === 0 ? 'PASSED' : 'FAILED'}: seed ${seed}, ${total.faults} faults, ${total.messages} messages`);
  return code;
}

async function runJob(
  options: GrayAuditOptions,
  report: Report,
  chance: Prng,
  { traffic, topology, transport, ms }: { traffic: GrayTraffic; topology: Topology; transport: Transport; ms: number },
): Promise<Outcome> {
  const { mca, plant, stop } = options;
  const { mbits, bad } = TOPOLOGIES[topology];
  await using lab = await Lab.create({
    nodes: GRAY_TRAFFICS[traffic].ranks,
    rails: mbits.map((mbit) => ({ mbit })),
    seed: options.seed,
    congestionControl: options.congestionControl,
  });
  const names = Object.keys(GRAY_FAULTS).filter((name) => name !== 'none' && whyNotRun(name) === undefined);
  // Flipped bits are seen by checksums only.
  const checked = { btl_base_payload_crc: 'true' };
  const outcome: Outcome = { faults: 0, messages: 0, wrong: [] };
  let job: GrayJob | undefined;
  try {
    job = await GrayJob.start({ lab, traffic, mca: { ...TRANSPORTS[transport].mca, ...checked, ...mca }, rails: mbits.length, plant });
    job.go();
    await job.watch(200);
    const endAt = nowMs() + ms;
    for (let isLast = false; !isLast; ) {
      const rails = chance.shuffle(mbits.map((_, rail) => rail)).slice(0, chance.between(1, bad));
      const faults = rails.map((rail) => ({ rail, name: chance.pick(names) }));
      const holdMs = chance.between(HOLD_MS.low, HOLD_MS.high);
      const pauseMs = chance.between(PAUSE_MS.low, PAUSE_MS.high);
      report.say(`  ${faults.map(({ rail, name }) => `rail ${rail}: ${name}`).join(', ')} for ${holdMs} ms`);
      report.figure({ faults, holdMs, pauseMs });
      for (const { rail, name } of faults) await GRAY_FAULTS[name].begin(lab, rail, chance);
      outcome.faults += faults.length;
      await job.watch(holdMs);
      isLast = nowMs() >= endAt || stop.aborted;
      // The last faults last until the job has ended: a healthy rail is enough for that.
      if (isLast) outcome.wrong.push(...(await finish(job, report)));
      await Promise.all(rails.map((rail) => lab.heal(rail)));
      if (!isLast) await job.watch(pauseMs);
    }
    outcome.messages = job.receivers.reduce((sum, rank) => sum + rank.messages, 0);
  } catch (error) {
    if (!(error instanceof JobError || error instanceof LabError || error instanceof MultirailError)) throw error;
    outcome.wrong.push(`${error.message}\n${(await job?.autopsy()) ?? ''}`);
  } finally {
    await job?.kill();
  }
  return outcome;
}

async function finish(job: GrayJob, report: Report): Promise<string[]> {
  const from = nowMs();
  const wrong = await job.finish();
  report.say(`  ended in ${digits((nowMs() - from) / 1000)} s, with the last faults still there`);
  return wrong;
}
