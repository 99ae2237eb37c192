// Method: one module and its rail to itself; every step is a call of progress().
import { describe, expect, test, vi } from 'vitest';
import { BUSY, DOWN, OK } from '../../../src/btl/btl.ts';
import { registerComponent, selectComponents } from '../../../src/btl/registry.ts';
import { SelfModule } from '../../../src/btl/self/module.ts';
import { verbsComponent } from '../../../src/btl/verbs/component.ts';
import { loadRdma } from '../../../src/btl/verbs/rdma.ts';
import { MultirailError } from '../../../src/errors.ts';
import { loadNative } from '../../../src/native/load.ts';
import { ParamTable } from '../../../src/params.ts';
import { contextOf, frameOf, mustSend, Recorder } from '../../support/harness.ts';
import { pattern } from '../../support/pattern.ts';

function make() {
  const up = new Recorder();
  const module = new SelfModule(contextOf(3, up));
  const [plan] = module.plan(3, {}, {}, 'host-a');
  const end = module.endpoint(3, 0, plan, {});
  const turn = (): string[] => {
    up.run(module, 1);
    return up.take();
  };
  end.connect(1);
  expect(turn()).toEqual(['connected 1']);
  return { up, module, end, turn };
}

describe('self', () => {
  test('only to itself', () => {
    const { module } = make();
    expect(module.plan(2, {}, {}, 'host-a')).toEqual([]);
  });
  test('delivers, places over any split, completes', () => {
    const { up, end, turn, module } = make();
    const bytes = pattern(1000);
    const memory = new Uint8Array(1000);
    up.makeSink = () => ({
      views: [memory.subarray(0, 1), memory.subarray(1, 1), memory.subarray(1, 700), memory.subarray(700)],
      revoked: false,
    });
    mustSend(end, frameOf(8, [bytes.subarray(0, 10), bytes.subarray(10)]));
    mustSend(end, frameOf(8, [bytes.subarray(0, 333), new Uint8Array(0), bytes.subarray(333)], { placed: true }));
    expect(module.nextDeadline()).toBe(0);
    expect(turn()).toEqual(['frame 8 1000', 'completed 0 delivered', 'sinkFor 1000', 'frame 8 0 placed', 'completed 0 delivered']);
    expect(Buffer.compare(memory, bytes)).toBe(0);
    expect(end.outstandingBytes).toBe(0);
    expect(module.nextDeadline()).toBe(Number.POSITIVE_INFINITY);
  });
  test('window, BUSY, onWritable', () => {
    const { end, turn } = make();
    end.windowBytes = 100;
    expect(end.send(frameOf(8, [pattern(500)]))).toBe(OK);
    expect(end.send(frameOf(8, [pattern(5)]))).toBe(BUSY);
    expect(turn()).toEqual(['frame 8 500', 'completed 0 delivered', 'writable']);
  });
  test('fence: railDown, then in doubt, in order; the next epoch works', () => {
    const { end, turn } = make();
    mustSend(end, frameOf(8));
    mustSend(end, frameOf(8, [pattern(5)]));
    end.fence(1, { kind: 'fenced', text: 'test' });
    expect(end.send(frameOf(8))).toBe(DOWN);
    expect(turn()).toEqual(['down 1 fenced', 'completed 0 inDoubt', 'completed 0 inDoubt']);
    end.connect(1);
    end.connect(2);
    expect(turn()).toEqual(['failed 1 fenced highest 1', 'connected 2']);
  });
  test('a packet that breaks the protocol ends the epoch', () => {
    const { up, end, turn } = make();
    up.onFrameDo = () => {
      throw new MultirailError('ERR_PROTOCOL', 'test');
    };
    mustSend(end, frameOf(8));
    mustSend(end, frameOf(8));
    expect([...turn(), ...turn()]).toEqual(['frame 8 0', 'down 1 damaged', 'completed 0 inDoubt', 'completed 0 inDoubt']);
  });
  test('probe and BYE', () => {
    const { end, turn } = make();
    end.probe(9);
    mustSend(end, frameOf(8));
    end.bye();
    expect(end.send(frameOf(8))).toBe(DOWN);
    expect(turn()).toEqual(['probeAnswered 1 9', 'frame 8 0', 'completed 0 delivered', 'bye 1']);
    expect(end.epoch).toBe(0);
  });
});

describe('registry', () => {
  const names = (btl: string): string[] => selectComponents(new ParamTable({ btl })).components.map((component) => component.name);
  // The native part may be missing here, and a device nearly always is: then sm or verbs are left out, wherever they are named.
  const sm = loadNative().binding === undefined ? [] : ['sm'];
  const verbs = verbsComponent.unavailable(new ParamTable()) === undefined ? ['verbs'] : [];
  test('lists and exclusions', () => {
    expect(names('self,tcp')).toEqual(['self', 'tcp']);
    expect(names('ws,self')).toEqual(['self', 'ws']);
    expect(names('tcp,sm,self')).toEqual(['self', ...sm, 'tcp']);
    expect(names('^ws')).toEqual(['self', ...sm, ...verbs, 'tcp']);
    expect(names('^ws,tcp')).toEqual(['self', ...sm, ...verbs]);
    expect(names('')).toEqual(['self', ...sm, ...verbs, 'tcp', 'ws']);
  });
  test('without the native part sm and verbs are left out, and the reason is kept', () => {
    vi.stubEnv('MULTIRAIL_NATIVE', '0');
    const { components, unavailable } = selectComponents(new ParamTable());
    expect(components.map(({ name }) => name)).toEqual(['self', 'tcp']);
    // Where node-rdma is missing too, that is what verbs says.
    const reason = expect.stringContaining('native part');
    expect(unavailable).toEqual([
      { name: 'sm', reason },
      { name: 'verbs', reason: loadRdma().rdma === undefined ? loadRdma().reason : reason },
    ]);
    vi.unstubAllEnvs();
  });
  test('unknown names and mixed lists are ERR_CONFIG', () => {
    expect(() => names('self,tpc')).toThrow(/ERR_CONFIG.*"tpc".*self, sm, verbs, tcp, ws/);
    expect(() => names('tcp,^ws')).toThrow(/ERR_CONFIG/);
    expect(() => names('^self,sm,verbs,tcp,ws')).toThrow(/ERR_INIT/);
  });
  test('others register; one that cannot work here gives its reason', () => {
    const off = registerComponent({
      name: 'elan',
      description: 'test',
      unavailable: () => 'no device',
      create: () => {
        throw new Error('not created');
      },
    });
    try {
      const selection = selectComponents(new ParamTable({ btl: 'self,elan' }));
      expect(selection.components.map((component) => component.name)).toEqual(['self']);
      expect(selection.unavailable).toEqual([{ name: 'elan', reason: 'no device' }]);
      expect(() => names('elan')).toThrow(/ERR_INIT.*elan: no device/);
    } finally {
      off();
    }
    expect(() => names('elan')).toThrow(/ERR_CONFIG/);
  });
});
