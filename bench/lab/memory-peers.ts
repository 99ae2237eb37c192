// Peers of the measured process: several ranks in one process, each with a runtime of its own, connected to rank 0 by the real TCP
// transport and to nobody else. Each sends back what it receives. Argument: JSON of MemoryPeersSpec.
//
// Ranks other than 0 would connect to each other as well: with 128 of them that is 16,000 connections that nobody measures. So TCP
// plans no rails between them here, and a transport that never connects stands in. Rank 0 has nothing of the kind.
// Imports the product with its registry, lab-memory-protocol.
import { type BtlContext, type BtlEndpoint, type BtlModule, DOWN, newRailByteCounters, type RailPlan } from '../../src/btl/btl.ts';
import { knownComponents, registerComponent } from '../../src/btl/registry.ts';
import { init } from '../../src/index.ts';
import { EXCHANGE_BYTES, EXCHANGE_TAG, type MemoryPeersSpec } from './memory-protocol.ts';

const spec = JSON.parse(process.argv[2]) as MemoryPeersSpec;
const LONGEST_MS = 600_000;

const tcp = knownComponents().find(({ name }) => name === 'tcp');
if (tcp === undefined) throw new Error('there is no transport tcp');
registerComponent({
  ...tcp,
  name: 'tcp',
  unavailable: (params) => tcp.unavailable(params),
  create: (context) => {
    const module = tcp.create(context);
    const plan = module.plan.bind(module);
    module.plan = (peer, local, remote, hostId) => (peer === 0 ? plan(peer, local, remote, hostId) : []);
    return module;
  },
});

/** A rail that is dialled and never answers. */
class AbsentModule implements BtlModule {
  readonly name = 'absent';
  private readonly context: BtlContext;

  constructor(context: BtlContext) {
    this.context = context;
  }

  address = () => ({});
  open = async () => {};
  close = async () => {};
  progress = () => 0;
  nextDeadline = () => Number.POSITIVE_INFINITY;
  remoteAddressChanged = () => {};
  forgetPeer = () => true;

  plan(peer: number): RailPlan[] {
    if (peer === 0 || peer === this.context.rank) return [];
    const attributes: RailPlan['attributes'] = {
      bandwidthMBps: 1,
      latencyUs: 1,
      exclusivity: 1,
      role: 'active',
      canPut: false,
      canGet: false,
      liveness: 'self',
      frameBytesMax: 1 << 20,
    };
    return [{ key: 'absent', attributes, detail: undefined }];
  }

  endpoint(peer: number, rail: number, plan: RailPlan): BtlEndpoint {
    const nothing = () => {};
    return {
      module: this,
      peer,
      rail,
      plan,
      epoch: 0,
      outstandingBytes: 0,
      byeDelivered: false,
      windowBytes: 0,
      counters: newRailByteCounters(),
      connect: nothing,
      cancelConnect: nothing,
      send: () => DOWN,
      flush: nothing,
      revokeSink: nothing,
      fence: nothing,
      probe: nothing,
      bye: nothing,
    };
  }
}
registerComponent({
  name: 'absent',
  description: 'Rails that never connect.',
  unavailable: () => undefined,
  create: (context) => new AbsentModule(context),
});

// Each runtime listens for the end of the process.
process.setMaxListeners(0);
const into = new Uint8Array(EXCHANGE_BYTES);

async function peer(rank: number): Promise<never> {
  const mpi = await init({
    env: { ...process.env, MULTIRAIL_RANK: String(rank) },
    params: {
      ...spec.mca,
      btl: `${spec.mca.btl},absent`,
      btl_tcp_links: spec.rails,
      bml_connect_timeout_ms: LONGEST_MS,
      pml_peer_timeout_ms: LONGEST_MS,
    },
    abortOnUncaught: false,
  });
  // One buffer for all: rank 0 speaks to one at a time.
  for (;;) {
    const { bytes } = await mpi.world.recv(into, 0, EXCHANGE_TAG);
    await mpi.world.send(into.subarray(0, bytes), 0, EXCHANGE_TAG);
  }
}

await Promise.all(Array.from({ length: spec.to - spec.from + 1 }, (_, i) => peer(spec.from + i)));
