// Processes whose messages are logged, over one simulated rail, and what is decided about them: by hand, step by step.
import type { MultirailError } from '../../../src/errors.ts';
import { SendLog } from '../../../src/ft/log/send-log.ts';
import type { RecvRequest, SendRequest } from '../../../src/pml/records.ts';
import type { Cut, Succession } from '../../../src/pml/succession.ts';
import { crc32cJs } from '../../../src/util/crc32c.ts';
import { Iov } from '../../../src/util/iov.ts';
import { SCENARIO_PARAMS } from '../../../tools/sim/scenario.ts';
import { World } from '../../../tools/sim/world.ts';

/** Its messages are logged. */
export const CTX = 20;
export const MADE_CTX = 21;
/** Those of this one are not. */
export const PLAIN_CTX = 7;
export const EAGER_BYTES = 100;
/** So long a message takes 100 ms. */
export const LONG_BYTES = 10_000;

export class Logged {
  readonly world: World;
  readonly logs: SendLog[] = [];
  /** What successors have sent that was another message than before, as it was told. */
  readonly differences: MultirailError[] = [];
  private readonly joined = new Map<number, Succession>();

  /** The first ones are members, the others stand by. */
  constructor(members: number, standbys = 0, logBytesMax = 1_000_000) {
    const ranks = members + standbys;
    const params = { ...SCENARIO_PARAMS, pml_eager_limit_bytes: String(EAGER_BYTES) };
    const services = new Set([CTX, MADE_CTX, PLAIN_CTX]);
    this.world = new World({ seed: 1, ranks, rails: [{ bytesPerMs: 100, latencyUs: 10, jitterUs: 0 }], params, services });
    this.world.runUntil(() => this.world.allUp, 1000);
    for (let number = 0; number < ranks; number++) this.logs.push(new SendLog({ bytesMax: logBytesMax, slabBytes: 1000 }));
    const all = Array.from({ length: members }, (_, number) => number);
    for (const number of all) this.join(number, all);
  }

  join(number: number, members: readonly number[]): Succession {
    const covers = (ctx: number): boolean => ctx === CTX || ctx === MADE_CTX;
    const joined = this.pml(number).log(
      { log: this.logs[number], covers, digest: crc32cJs, onDiffers: (error) => this.differences.push(error) },
      members,
    );
    this.joined.set(number, joined);
    return joined;
  }

  pml(number: number) {
    return this.world.processes[number].engine.pml;
  }

  of(number: number): Succession {
    return this.joined.get(number) as Succession;
  }

  send(from: number, to: number, tag: number, bytes: Uint8Array, { sync = false, ctx = CTX } = {}): SendRequest {
    this.world.processes[from].driver.ready = true;
    return this.pml(from).isend(to, ctx, tag, new Iov([bytes]), sync);
  }

  receive(at: number, from: number, tag: number, into: Uint8Array, ctx = CTX): RecvRequest {
    this.world.processes[at].driver.ready = true;
    return this.pml(at).irecv(from, ctx, tag, new Iov([into]));
  }

  run(ms = 1000): void {
    this.world.runFor(ms);
  }

  /** It dies, and all others hear of it. */
  kill(number: number): void {
    this.world.kill(number);
    for (const { rank } of this.world.processes) if (!this.world.isDead(rank)) this.world.tellFailed(rank, number);
    this.run(1);
  }

  /** The successor begins with that save, and all members have heard of it. Nobody has said yet what it has. */
  replace(dead: number, successor: number, members: readonly number[], cut: Pick<Cut, 'flows' | 'unexpected'>): void {
    for (const number of members) if (number !== successor) this.of(number).succeed(dead, successor);
    this.join(successor, members).restore(cut);
  }

  /** Both say what they have. */
  sync(a: number, b: number): boolean {
    const [fromA, fromB] = [this.of(a).syncFor(b), this.of(b).syncFor(a)];
    const taken = [this.of(a).takeSync(b, fromB), this.of(b).takeSync(a, fromA)];
    for (const number of [a, b]) this.world.processes[number].driver.ready = true;
    return taken.every((one) => one);
  }
}

export const NOTHING_SAVED: Pick<Cut, 'flows' | 'unexpected'> = { flows: [], unexpected: [] };

export const filled = (bytes: number, value: number): Uint8Array => new Uint8Array(bytes).fill(value);
