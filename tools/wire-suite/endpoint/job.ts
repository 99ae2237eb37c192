// One job of the endpoint under test: the production engine over one real transport, as one of two ranks, without a launcher.
import type { BtlModule } from '../../../src/btl/btl.ts';
import { knownComponents } from '../../../src/btl/registry.ts';
import { MultirailError } from '../../../src/errors.ts';
import { hostId } from '../../../src/launch/meeting/identity.ts';
import { checkEntry, MODEX_VERSION, type ModexEntry, makeRails } from '../../../src/mpi/modex.ts';
import { loadNative } from '../../../src/native/load.ts';
import { ParamTable } from '../../../src/params.ts';
import type { RecvRequest, SendRequest } from '../../../src/pml/records.ts';
import { EventLoopDriver } from '../../../src/progress/driver.ts';
import { Engine } from '../../../src/progress/engine.ts';
import { PollerDriver } from '../../../src/progress/loop-driver.ts';
import { engineOptions } from '../../../src/progress/options.ts';
import { Iov } from '../../../src/util/iov.ts';
import type { Commands, RequestState, StartCommand } from '../convention.ts';
import { pattern, sha256 } from '../pattern.ts';

/** Longest message of a test; a tester that asks for more is mistaken. */
const MESSAGE_BYTES_MAX = 64 * 1024 * 1024;

export interface EndpointOptions {
  /** Over the native part where there is one (default), or without. */
  native?: boolean;
  log?: (text: string) => void;
}

/** Parameters of the transport and of timing, so that a test need not wait long. Only a tester elsewhere needs more than loopback. */
function paramsOf(start: StartCommand, isNear: boolean): ParamTable {
  const { transport } = start;
  return new ParamTable(
    {
      pml_eager_limit_bytes: String(start.eagerLimitBytes),
      pml_rndv_inline_bytes: String(start.rndvInlineBytes),
      pml_frag_bytes: String(start.fragBytes),
      pml_frag_bytes_max: String(start.fragBytes),
      pml_retained_bytes_max: String(start.retainedBytesMax),
      pml_unexpected_bytes_max: String(start.unexpectedBytesMax),
      pml_peer_timeout_ms: String(start.peerTimeoutMs),
      bml_redial_min_ms: '10',
      bml_redial_max_ms: '40',
      bml_flap_hold_max_ms: '40',
      btl_base_payload_crc: String(start.payloadCrc),
      ...(isNear ? { [`btl_${transport}_if_include`]: 'lo', [`btl_${transport}_if_exclude`]: '' } : {}),
      ...(transport === 'tcp' ? { btl_tcp_links: String(start.links), btl_tcp_disable_family: '6' } : {}),
    },
    {},
  );
}

export class EndpointJob {
  readonly entry: ModexEntry;
  private readonly engine: Engine;
  private readonly module: BtlModule;
  private readonly driver: EventLoopDriver;
  private readonly peer: number;
  private readonly requests = new Map<number, RecvRequest | SendRequest>();

  private constructor(engine: Engine, module: BtlModule, driver: EventLoopDriver, entry: ModexEntry, peer: number) {
    this.engine = engine;
    this.module = module;
    this.driver = driver;
    this.entry = entry;
    this.peer = peer;
  }

  /** Opens the transport and begins to dial, or to wait to be dialled. */
  static async start(start: StartCommand, options: EndpointOptions): Promise<EndpointJob> {
    const component = knownComponents().find(({ name }) => name === start.transport);
    if (component === undefined) throw new MultirailError('ERR_ARG', `transport "${start.transport}" is not known here`);
    const theirs = checkEntry(start.peer.rank, start.peer.entry);
    const params = paramsOf(start, theirs.hostId === hostId());
    const native = options.native === false ? undefined : loadNative().binding;
    const driver = native === undefined ? new EventLoopDriver() : new PollerDriver(native, 0);
    const engine = new Engine(
      engineOptions(start.rank, params),
      driver,
      options.log === undefined ? {} : { log: (level, text) => options.log?.(`${level}: ${text}`) },
    );
    driver.attach(engine);
    const module = component.create({
      rank: start.rank,
      size: start.size,
      jobId: start.jobId,
      incarnation: start.incarnation,
      secret: start.secret === null ? undefined : new Uint8Array(Buffer.from(start.secret, 'hex')),
      hostId: hostId(),
      params,
      upcalls: engine,
      poller: driver instanceof PollerDriver ? driver.poller : undefined,
    });
    try {
      await module.open();
      const entry: ModexEntry = {
        version: MODEX_VERSION,
        incarnation: start.incarnation,
        hostId: hostId(),
        unexpectedBytesMax: start.unexpectedBytesMax,
        btl: { [module.name]: JSON.parse(JSON.stringify(module.address())) },
        excluded: {},
      };
      const rails = makeRails(start.rank, start.peer.rank, [module], entry, theirs);
      engine.addPeer(start.peer.rank, theirs.incarnation, rails, theirs.unexpectedBytesMax);
      engine.addModule(module);
      engine.schedule();
      return new EndpointJob(engine, module, driver, entry, start.peer.rank);
    } catch (error) {
      await module.close();
      if (driver instanceof PollerDriver) driver.close();
      throw error;
    }
  }

  recv({ request, source, ctx, tag, bytes }: Commands['recv']['in']): void {
    const buffer = new Iov([new Uint8Array(checkBytes(bytes))]);
    this.requests.set(request, this.engine.pml.irecv(source, ctx, tag, buffer));
    this.engine.schedule();
  }

  send({ request, dest, ctx, tag, bytes, seed, sync }: Commands['send']['in']): void {
    const buffer = new Iov([pattern(seed, 0, checkBytes(bytes))]);
    this.requests.set(request, this.engine.pml.isend(dest, ctx, tag, buffer, sync));
    this.engine.schedule();
  }

  test(id: number): RequestState {
    const request = this.request(id);
    const state: RequestState = { done: request.done };
    if (!request.done) return state;
    if (request.error !== undefined) state.error = request.error.code;
    if (request.kind === 'recv') {
      state.cancelled = request.cancelled;
      state.source = request.matchedSource;
      state.tag = request.matchedTag;
      state.bytes = request.receivedBytes;
      state.sha256 = sha256((request.buffer.views[0] ?? new Uint8Array(0)).subarray(0, request.receivedBytes));
    }
    return state;
  }

  cancel(id: number): boolean {
    const request = this.request(id);
    if (request.kind !== 'recv') throw new MultirailError('ERR_ARG', `request ${id} is not a receive`);
    const cancelled = this.engine.pml.cancel(request);
    this.engine.schedule();
    return cancelled;
  }

  probe({ source, ctx, tag }: Commands['probe']['in']): Commands['probe']['out'] {
    const found = this.engine.pml.iprobe(source, ctx, tag);
    return found === undefined ? { found: false } : { found: true, source: found.source, tag: found.tag, bytes: found.messageBytes };
  }

  freeContext(ctx: number): void {
    this.engine.pml.freeContext(ctx);
    this.engine.schedule();
  }

  rails(): Commands['rails']['out'] {
    const { rails = [] } = this.engine.bml.peers.get(this.peer) ?? {};
    return {
      rails: rails.map(({ state, epoch, lastReason }) => ({
        state,
        epoch,
        ...(lastReason === undefined ? {} : { lastReason: lastReason.kind }),
      })),
    };
  }

  finalize(): void {
    this.engine.beginFinalize();
  }

  hasLeft(): boolean {
    return this.engine.isLeft();
  }

  async stop(): Promise<void> {
    await this.engine.close();
    if (this.driver instanceof PollerDriver) this.driver.close();
  }

  /** For tests: where it listens. */
  get address(): unknown {
    return this.module.address();
  }

  private request(id: number): RecvRequest | SendRequest {
    const request = this.requests.get(id);
    if (request === undefined) throw new MultirailError('ERR_ARG', `request ${id} was never begun`);
    return request;
  }
}

function checkBytes(bytes: number): number {
  if (!Number.isSafeInteger(bytes) || bytes < 0 || bytes > MESSAGE_BYTES_MAX)
    throw new MultirailError('ERR_ARG', `a message of ${bytes} bytes; expected 0 to ${MESSAGE_BYTES_MAX}`);
  return bytes;
}
