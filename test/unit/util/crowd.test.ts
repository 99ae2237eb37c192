// Method: the factor and the limits as numbers, at the corners and over a grid of ranks and processors.
import { describe, expect, test } from 'vitest';
import { Bml } from '../../../src/bml/bml.ts';
import type { BtlModule, CrowdLimits } from '../../../src/btl/btl.ts';
import { withDefaults as clientDefaults } from '../../../src/launch/oob/client-options.ts';
import { withDefaults as serverDefaults } from '../../../src/launch/oob/server-options.ts';
import { ParamTable } from '../../../src/params.ts';
import { engineOptions, expectCrowd } from '../../../src/progress/options.ts';
import { crowdFactor, limitInCrowd } from '../../../src/util/crowd.ts';

describe('how many times as long', () => {
  test('up to four ranks for each processor, limits are as they stand', () => {
    for (const [ranks, processors] of [
      [1, 1],
      [4, 1],
      [8, 2],
      [256, 64],
      [1, 0.25],
    ])
      expect(crowdFactor(ranks, processors)).toBe(1);
  });

  test('from there on in proportion, parts of a processor included, and 64 times at most', () => {
    expect(crowdFactor(16, 2)).toBe(2);
    expect(crowdFactor(256, 2)).toBe(32);
    expect(crowdFactor(4, 0.5)).toBe(2);
    expect(crowdFactor(4096, 1)).toBe(64);
    expect(crowdFactor(2, 1e-9)).toBe(64);
  });

  test('more ranks never have less time, and more processors never more', () => {
    for (let ranks = 1; ranks < 600; ranks += 7) {
      for (let processors = 1; processors < 70; processors += 3) {
        const factor = crowdFactor(ranks, processors);
        expect(factor).toBeGreaterThanOrEqual(1);
        expect(crowdFactor(ranks + 1, processors)).toBeGreaterThanOrEqual(factor);
        expect(crowdFactor(ranks, processors + 1)).toBeLessThanOrEqual(factor);
      }
    }
  });

  test('a limit is a whole number of milliseconds, and never less than it was', () => {
    expect(limitInCrowd(3000, 1)).toBe(3000);
    expect(limitInCrowd(1000, 4 / 3)).toBe(1334);
    expect(limitInCrowd(3000, 0.5)).toBe(3000);
  });
});

describe('what it does', () => {
  const bmlOf = (params: ParamTable) => new Bml(engineOptions(0, params).bml, () => undefined);
  const told = (params: ParamTable): { limits: CrowdLimits | undefined; bml: Bml } => {
    let limits: CrowdLimits | undefined;
    const module: Pick<BtlModule, 'expectCrowd'> = {
      expectCrowd: (given) => {
        limits = given;
      },
    };
    const bml = bmlOf(params);
    expectCrowd(32, params, bml, [module as BtlModule]);
    return { limits, bml };
  };

  test('rails have more time to connect and to shake hands', () => {
    const { limits, bml } = told(new ParamTable());
    expect(limits).toEqual({ factor: 32, connectTimeoutMs: 19_200, handshakeTimeoutMs: 96_000 });
    expect(bml.options).toMatchObject({ crowd: 32, connectTimeoutMs: 19_200 });
  });

  test('what somebody has set stays', () => {
    const { limits } = told(new ParamTable({ btl_base_handshake_timeout_ms: '3000' }, { MULTIRAIL_MCA_bml_connect_timeout_ms: '700' }));
    expect(limits).toEqual({ factor: 32, connectTimeoutMs: 700, handshakeTimeoutMs: 3000 });
  });

  test('both sides of the out-of-band channel have more time, and say less where there is nothing to say', () => {
    const secret = new Uint8Array(32);
    const server = { jobId: 'j', size: 2, secret, knowsProcesses: true, reconnectTimeoutMs: 1 };
    const client = { urls: ['ws://x'], secret, jobId: 'j', rank: 0, size: 2, incarnation: 1, hostId: 'h', reconnectTimeoutMs: 1 };
    expect(serverDefaults(server)).toMatchObject({ handshakeTimeoutMs: 3000, pingIntervalMs: 500 });
    expect(serverDefaults({ ...server, crowd: 32 })).toMatchObject({ handshakeTimeoutMs: 96_000, pingIntervalMs: 2000 });
    expect(serverDefaults({ ...server, crowd: 32, handshakeTimeoutMs: 100 })).toMatchObject({ handshakeTimeoutMs: 100 });
    expect(clientDefaults(client)).toMatchObject({ connectTimeoutMs: 1000, pingIntervalMs: 500 });
    expect(clientDefaults({ ...client, crowd: 8 })).toMatchObject({ connectTimeoutMs: 8000, pingIntervalMs: 2000 });
  });
});
