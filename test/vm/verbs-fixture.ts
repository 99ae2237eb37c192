// Verbs rails between ranks of one process, each on separate devices: what the suites of test/contract and test/semantics run on inside the
// guest.
import { readFileSync } from 'node:fs';
import type { BtlComponent, Params } from '../../src/btl/btl.ts';
import { verbsComponent } from '../../src/btl/verbs/component.ts';
import { loadNative } from '../../src/native/load.ts';
import { ParamTable } from '../../src/params.ts';
import { type Fixture, realPair } from '../support/btl-fixture.ts';
import type { Side } from '../support/btl-recorder.ts';

/** Soft-RoCE devices rxe0 … of the guest; rank r has `perRank` of them, so that packets between two ranks take a wire. */
export const DEVICES = 4;

export function devicesOf(rank: number, perRank: number): string[] {
  const ranks = DEVICES / perRank;
  return Array.from({ length: perRank }, (_, i) => `rxe${(rank % ranks) * perRank + i}`);
}

function withList(params: Params, name: string, list: string[]): Params {
  return {
    int: (asked) => params.int(asked),
    bool: (asked) => params.bool(asked),
    string: (asked) => params.string(asked),
    list: (asked) => (asked === name ? list : params.list(asked)),
  };
}

/** The component, each rank on its own devices. */
export function verbsOnDevices(perRank: number): BtlComponent {
  return {
    name: verbsComponent.name,
    description: verbsComponent.description,
    unavailable: (params) => verbsComponent.unavailable(params),
    create: (context) =>
      verbsComponent.create({ ...context, params: withList(context.params, 'btl_verbs_if_include', devicesOf(context.rank, perRank)) }),
  };
}

/** Why there can be no verbs here; undefined in the guest. */
export const unavailable = verbsComponent.unavailable(new ParamTable({}));

/** A second, at the speed of the guest. */
const LONG_PUT_BYTES = 24 * 1024 * 1024;
/** Buffers that take the long frames of the suite; a guest whose host is busy acknowledges late. */
const SUITE_PARAMS = { btl_verbs_buffer_bytes: '384k', btl_verbs_ack_timeout_exponent: '16' };

/** What the kernel has counted of that device. */
export function hardwareCounter(device: string, name: string): number {
  return Number(readFileSync(`/sys/class/infiniband/${device}/ports/1/hw_counters/${name}`, 'utf8'));
}

export function verbsFixture(wrap: (component: BtlComponent) => BtlComponent = (component) => component): Fixture {
  const component = wrap(verbsOnDevices(2));
  const fixture: Fixture = {
    setup: async (options) => {
      const params = { ...SUITE_PARAMS, ...options.params };
      const pair = await realPair({ ...options, params, componentOf: () => component, native: loadNative().binding });
      const sentPackets = (side: Side) => hardwareCounter(devicesOf(side.rank, 2)[0], 'sent_pkts');
      return Object.assign(pair, { longPutBytes: LONG_PUT_BYTES, sentPackets });
    },
  };
  if (unavailable !== undefined) fixture.unavailable = unavailable;
  return fixture;
}
