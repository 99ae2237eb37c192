// What drives the engine of a rank: the event loop alone, or with the native part its poller.
import type { Params } from '../btl/btl.ts';
import type { NativeBinding } from '../native/binding.ts';
import { loadNative } from '../native/load.ts';
import { EventLoopDriver } from '../progress/driver.ts';
import { PollerDriver } from '../progress/loop-driver.ts';
import type { RuntimeDriver, RuntimeOptions } from './runtime-options.ts';

/** The native part that a runtime uses; undefined = it does without. */
export function nativeOf({ native, driver }: RuntimeOptions): NativeBinding | undefined {
  if (native !== undefined) return native === false ? undefined : native;
  return driver === undefined ? loadNative().binding : undefined;
}

export function makeDriver(native: NativeBinding | undefined, params: Params): RuntimeDriver {
  return native === undefined ? new EventLoopDriver() : new PollerDriver(native, params.int('mpi_spin_us'));
}
