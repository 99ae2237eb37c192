// Plans of the fault interposer: the textual form of the parameter btl_fault, parsed into a list of actions.
//
//   plan    = action { "," action }
//   action  = "pull"    ":" rail [ ":" mode ] "@" time        the rail stops working, until it is restored
//           | "restore" ":" rail "@" time
//           | "busy"    ":" rail "@" time "+" time            every send is BUSY for so long
//           | "stall"   ":" rail "@" time "+" time            nothing is sent for so long, nothing is lost
//           | "corrupt" ":" rail ":" ( "payload" | "header" ) "@" time
//           | "lossy"   ":" rail ":" percent [ "#" seed ] "@" time [ "+" time ]   packets are lost, until it is restored
//           | "slow"    ":" rail ":" rate "@" time [ "+" time ]                   so many bytes per second, until it is restored
//           | "manual"                                        nothing by itself: rails are broken by hand, from the dashboard
//           | "random"  ":" option { "," option }             must be the last action
//   rail    = index of the rail in the pair's table | "*" | "key=" NAME; with "/PEER" behind it: only to that rank
//   mode    = "silent" (default) | "silent-out" | "silent-in" | "error" | "inside"
//   time    = NUMBER [ "ms" | "s" ], measured from the first progress()
//   option  = "seed=" N | "every=" time | "rate=" N (faults per second and rail; instead of every) | "heal=" time
//           | "kinds=" kind { "+" kind }, kind = silent | silent-out | silent-in | error | inside | busy | stall | payload | header
//                                                | lossy | slow
//   percent = NUMBER from 0.01 to 99, of packets of 1448 bytes        rate = bytes per second, a whole number from 1000 on
//
// Modes of a pull, as this rank sees it:
//   silent      a cable pulled out: what is sent vanishes, what comes is thrown away, and nobody is told. A rail that
//               checks itself goes down after the rail timeout; a rail that is judged by its siblings stays up in silence.
//   silent-out  what is sent vanishes; what comes still arrives.      silent-in  the other way round.
//   error       the rail goes down at once, as after an error of the transport, and the peer sees it closed.
//   inside      like error, in the middle of the next placed frame: half of its payload is written.
// A rail that is bad without being down, for what this rank sends on it; nothing is lost, but it comes late, as over TCP:
//   lossy       a loss that is noticed because packets follow costs nothing here. A loss that nothing follows, or whose second try is lost
//               too, stops the rail for 200 ms, and for twice as long after each further loss (util/loss.ts). The same seed gives the
//               same losses.
//   slow        frames queue and leave at that rate, behind the bytes that were under way when the rate fell.
// With "+ time", both are restored after that time.
// Examples: `pull:1@2000ms,restore:1@4000ms`   `random:seed=7,rate=2,heal=300ms,kinds=silent+error+busy`
import { MultirailError } from '../../errors.ts';
import { Prng } from '../../util/prng.ts';

export type PullMode = 'silent' | 'silent-out' | 'silent-in' | 'error' | 'inside';
const PULL_MODES: readonly string[] = ['silent', 'silent-out', 'silent-in', 'error', 'inside'];
const RANDOM_KINDS: readonly string[] = [...PULL_MODES, 'busy', 'stall', 'payload', 'header', 'lossy', 'slow'];
/** What random faults draw from, in hundredths of a percent and in bytes per second (64 kbit/s, 1 Mbit/s). */
const RANDOM_LOSSES = [100, 500, 2000, 5000] as const;
const RANDOM_RATES = [8000, 125_000] as const;
/** A slow rail still answers, so that nobody takes it for silent; below this rate the answers alone would fill it. */
export const SLOW_BYTES_PER_S_MIN = 1000;
const SLOW_BYTES_PER_S_MAX = 1e12;
const LOSS_PER_10K_MAX = 9900;

/** Which rails of a module are meant; what is not given matches all. */
export interface RailSelector {
  rail?: number;
  key?: string;
  peer?: number;
}

export type FaultAction =
  | { kind: 'pull'; which: RailSelector; mode: PullMode; atMs: number }
  | { kind: 'restore'; which: RailSelector; atMs: number }
  | { kind: 'busy' | 'stall'; which: RailSelector; atMs: number; forMs: number }
  | { kind: 'corrupt'; which: RailSelector; part: 'header' | 'payload'; atMs: number }
  | { kind: 'lossy'; which: RailSelector; lossPer10k: number; seed: string; atMs: number }
  | { kind: 'slow'; which: RailSelector; bytesPerS: number; atMs: number };

export interface RandomFaults {
  seed: string;
  /** Mean time between two faults of a rail. */
  everyMs: number;
  /** Longest time until a fault of a rail is over. */
  healMs: number;
  kinds: readonly string[];
}

export interface FaultPlan {
  actions: readonly FaultAction[];
  random?: RandomFaults;
}

function fail(item: string, expected: string): never {
  throw new MultirailError('ERR_CONFIG', `btl_fault: "${item}": expected ${expected}`);
}

function parseTime(text: string, item: string): number {
  const match = /^(\d+)(ms|s)?$/.exec(text);
  if (match === null) return fail(item, 'a time such as 2000ms or 2s');
  return Number(match[1]) * (match[2] === 's' ? 1000 : 1);
}

export function parseRailSelector(text: string): RailSelector {
  const match = /^(\*|\d+|key=[^/]+)(?:\/(\d+))?$/.exec(text);
  if (match === null) return fail(text, 'a rail: an index, * or key=NAME, with /PEER behind it for one peer');
  const which: RailSelector = {};
  if (match[1].startsWith('key=')) which.key = match[1].slice(4);
  else if (match[1] !== '*') which.rail = Number(match[1]);
  if (match[2] !== undefined) which.peer = Number(match[2]);
  return which;
}

/** PERCENT or PERCENT#SEED; undefined when it is neither, or out of range. */
export function parseLoss(text: string): { lossPer10k: number; seed: string } | undefined {
  const match = /^(\d{1,2}(?:\.\d{1,2})?)(?:#(.+))?$/.exec(text);
  if (match === null) return undefined;
  const lossPer10k = Math.round(Number(match[1]) * 100);
  return lossPer10k < 1 || lossPer10k > LOSS_PER_10K_MAX ? undefined : { lossPer10k, seed: match[2] ?? '1' };
}
export const LOSS_EXPECTED = 'PERCENT or PERCENT#SEED, with a percentage from 0.01 to 99';

/** Bytes per second; undefined when it is no rate, or out of range. */
export function parseRate(text: string): number | undefined {
  const rate = /^\d{1,13}$/.test(text) ? Number(text) : 0;
  return rate < SLOW_BYTES_PER_S_MIN || rate > SLOW_BYTES_PER_S_MAX ? undefined : rate;
}
export const RATE_EXPECTED = `a whole number of bytes per second, from ${SLOW_BYTES_PER_S_MIN} on`;

/** One action, and what ends it when it says for how long. */
function parseAction(item: string): FaultAction[] {
  const match = /^(pull|restore|busy|stall|corrupt|lossy|slow):([^@]+)@([^@+]+)(?:\+([^@+]+))?$/.exec(item);
  if (match === null) return fail(item, 'ACTION:RAIL@TIME with pull, restore, busy, stall, corrupt, lossy or slow, or manual');
  const [, kind, target, at, span] = match;
  const cut = target.lastIndexOf(':');
  const rail = cut < 0 ? target : target.slice(0, cut);
  const detail = cut < 0 ? undefined : target.slice(cut + 1);
  const which = parseRailSelector(rail);
  const atMs = parseTime(at, item);
  const hasSpan = ['busy', 'stall', 'lossy', 'slow'].includes(kind);
  if (span !== undefined && !hasSpan) return fail(item, 'no duration: pull and restore are two actions');
  const restored: FaultAction[] = span === undefined ? [] : [{ kind: 'restore', which, atMs: atMs + parseTime(span, item) }];
  switch (kind) {
    case 'pull': {
      const mode = detail ?? 'silent';
      if (!PULL_MODES.includes(mode)) return fail(item, `a mode: ${PULL_MODES.join(', ')}`);
      return [{ kind, which, mode: mode as PullMode, atMs }];
    }
    case 'corrupt':
      if (detail !== 'header' && detail !== 'payload') return fail(item, 'corrupt:RAIL:header or corrupt:RAIL:payload');
      return [{ kind, which, part: detail, atMs }];
    case 'lossy': {
      const loss = parseLoss(detail ?? '');
      if (loss === undefined) return fail(item, `lossy:RAIL:${LOSS_EXPECTED}`);
      return [{ kind, which, ...loss, atMs }, ...restored];
    }
    case 'slow': {
      const bytesPerS = parseRate(detail ?? '');
      if (bytesPerS === undefined) return fail(item, `slow:RAIL:RATE, ${RATE_EXPECTED}`);
      return [{ kind, which, bytesPerS, atMs }, ...restored];
    }
    case 'busy':
    case 'stall':
      if (span === undefined || detail !== undefined) return fail(item, `${kind}:RAIL@TIME+DURATION`);
      return [{ kind, which, atMs, forMs: parseTime(span, item) }];
    default:
      if (detail !== undefined) return fail(item, 'restore:RAIL@TIME');
      return [{ kind: 'restore', which, atMs }];
  }
}

function parseRandom(items: readonly string[]): RandomFaults {
  const random: RandomFaults = { seed: '1', everyMs: 500, healMs: 300, kinds: ['silent', 'error', 'inside', 'busy', 'stall'] };
  for (const item of items) {
    const [name, value] = item.split('=', 2);
    if (value === undefined) return fail(item, 'NAME=VALUE');
    if (name === 'seed') random.seed = value;
    else if (name === 'every') random.everyMs = Math.max(1, parseTime(value, item));
    else if (name === 'heal') random.healMs = Math.max(1, parseTime(value, item));
    else if (name === 'rate') {
      if (!/^[1-9]\d{0,2}$/.test(value)) return fail(item, 'a whole number of faults per second from 1 to 999');
      random.everyMs = Math.floor(1000 / Number(value));
    } else if (name === 'kinds') {
      random.kinds = value.split('+');
      for (const kind of random.kinds) if (!RANDOM_KINDS.includes(kind)) return fail(item, `kinds out of ${RANDOM_KINDS.join(', ')}`);
    } else return fail(item, 'seed, every, rate, heal or kinds');
  }
  return random;
}

/** Throws ERR_CONFIG that names the part which is wrong. An empty text is an empty plan. */
export function parseFaultPlan(text: string): FaultPlan {
  const items = text
    .split(',')
    .map((item) => item.trim())
    .filter((item) => item !== '');
  const actions: FaultAction[] = [];
  for (let i = 0; i < items.length; i++) {
    if (items[i].startsWith('random:')) {
      return { actions, random: parseRandom([items[i].slice('random:'.length), ...items.slice(i + 1)].filter((item) => item !== '')) };
    }
    // The interposer is there, and waits to be told.
    if (items[i] === 'manual') continue;
    actions.push(...parseAction(items[i]));
  }
  return { actions };
}

/** The random faults of one rail, one after the other, each over before the next begins. */
export class RandomSchedule {
  private readonly random: RandomFaults;
  private readonly prng: Prng;
  private readonly which: RailSelector;
  private queue: FaultAction[] = [];
  private atMs = 0;

  constructor(random: RandomFaults, which: RailSelector, label: string) {
    this.random = random;
    this.which = which;
    this.prng = new Prng(random.seed).split(label);
  }

  /** When the next action is due. */
  get nextMs(): number {
    if (this.queue.length === 0) this.refill();
    return this.queue[0].atMs;
  }

  take(): FaultAction {
    if (this.queue.length === 0) this.refill();
    return this.queue.shift() as FaultAction;
  }

  private refill(): void {
    const { prng, which, random } = this;
    const atMs = this.atMs + prng.between(1, 2 * random.everyMs);
    const forMs = prng.between(1, random.healMs);
    this.atMs = atMs + forMs;
    const kind = prng.pick(random.kinds);
    if (kind === 'busy' || kind === 'stall') this.queue.push({ kind, which, atMs, forMs });
    else if (kind === 'payload' || kind === 'header') this.queue.push({ kind: 'corrupt', which, part: kind, atMs });
    else if (kind === 'lossy' || kind === 'slow') {
      if (kind === 'slow') this.queue.push({ kind, which, bytesPerS: prng.pick(RANDOM_RATES), atMs });
      else this.queue.push({ kind, which, lossPer10k: prng.pick(RANDOM_LOSSES), seed: `${random.seed}/${atMs}`, atMs });
      this.queue.push({ kind: 'restore', which, atMs: this.atMs });
    } else {
      this.queue.push({ kind: 'pull', which, mode: kind as PullMode, atMs });
      this.queue.push({ kind: 'restore', which, atMs: this.atMs });
    }
  }
}
