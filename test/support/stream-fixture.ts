// Fixture of the real BTLs on loopback: it loads the src/btl/NAME/component.ts that is asked for, and makes pairs of modules.
import { existsSync } from 'node:fs';
import type { BtlComponent } from '../../src/btl/btl.ts';
import { loadNative } from '../../src/native/load.ts';
import { ParamTable } from '../../src/params.ts';
import { type Fixture, realPair } from './btl-fixture.ts';

const LOOPBACK: Record<string, Record<string, string>> = {
  self: {},
  sm: {},
  tcp: { btl_tcp_if_include: 'lo', btl_tcp_if_exclude: '', btl_tcp_links: '2', btl_tcp_route_check: 'false', btl_tcp_disable_family: '6' },
  ws: { btl_ws_if_include: 'lo', btl_ws_if_exclude: '', btl_ws_route_check: 'false' },
};

function isComponent(value: unknown): value is BtlComponent {
  return typeof value === 'object' && value !== null && 'create' in value && 'unavailable' in value;
}

export async function streamFixture(
  name: 'self' | 'sm' | 'tcp' | 'ws',
  wrap: (component: BtlComponent) => BtlComponent = (c) => c,
  /** Over the native part; its absence makes the fixture unavailable. */
  withNative = false,
): Promise<Fixture> {
  const url = new URL(`../../src/btl/${name}/component.ts`, import.meta.url);
  const params = LOOPBACK[name];
  if (!existsSync(url))
    return { unavailable: `src/btl/${name}/component.ts does not exist`, setup: () => Promise.reject(new Error('no component')) };
  const exported = Object.values((await import(url.href)) as Record<string, unknown>);
  const component = exported.find(isComponent);
  if (component === undefined) throw new Error(`src/btl/${name}/component.ts exports no BtlComponent`);
  const native = withNative ? loadNative() : undefined;
  const unavailable = component.unavailable(new ParamTable(params)) ?? (withNative ? native?.reason : undefined);
  const fixture: Fixture = {
    setup: (options) =>
      realPair({
        ...options,
        params: { ...params, ...options.params },
        loopback: name === 'self',
        componentOf: () => wrap(component),
        native: native?.binding,
      }),
  };
  if (name !== 'tcp') fixture.railsMax = 1;
  if (unavailable !== undefined) fixture.unavailable = unavailable;
  return fixture;
}
