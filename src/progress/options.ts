// Engine options from parameters, and what of them follows from the ranks that share the processors of this host.
import type { Bml } from '../bml/bml.ts';
import type { BtlModule, Params } from '../btl/btl.ts';
import type { ParamTable } from '../params.ts';
import { limitInCrowd } from '../util/crowd.ts';
import type { EngineOptions } from './engine.ts';

/** The parameters that PML, BML and engine take, as one options object. */
export function engineOptions(rank: number, params: Params): EngineOptions {
  return {
    rank,
    peerTimeoutMs: params.int('pml_peer_timeout_ms'),
    pml: {
      rank,
      eagerLimitBytes: params.int('pml_eager_limit_bytes'),
      rndvInlineBytes: params.int('pml_rndv_inline_bytes'),
      fragBytes: params.int('pml_frag_bytes'),
      retainedBytesMax: params.int('pml_retained_bytes_max'),
      forgetsIncomplete: params.bool('ft'),
      abandonedBytesMax: params.int('pml_abandoned_bytes_max'),
      unexpectedBytesMax: params.int('pml_unexpected_bytes_max'),
      traceEntries: params.int('pml_trace_entries'),
    },
    bml: {
      rank,
      crowd: 1,
      railTimeoutMs: params.int('bml_rail_timeout_ms'),
      stallTimeoutMs: params.int('bml_stall_timeout_ms'),
      trialMinMs: params.int('bml_trial_min_ms'),
      trialMaxMs: params.int('bml_trial_max_ms'),
      probeIdleMs: params.int('bml_probe_idle_ms'),
      redialMinMs: params.int('bml_redial_min_ms'),
      redialMaxMs: params.int('bml_redial_max_ms'),
      connectTimeoutMs: params.int('bml_connect_timeout_ms'),
      holdsSpares: params.string('bml_spare_rails') === 'needed',
      flapWindowMs: params.int('bml_flap_window_ms'),
      flapHoldMaxMs: params.int('bml_flap_hold_max_ms'),
      windowMinBytes: params.int('bml_window_min_bytes'),
      windowMaxBytes: params.int('bml_window_max_bytes'),
      windowMs: params.int('bml_window_ms'),
      fragBytes: params.int('pml_frag_bytes'),
      fragBytesMax: params.int('pml_frag_bytes_max'),
      fragUs: params.int('pml_frag_us'),
    },
  };
}

/**
 * The ranks of this host share its processors (`factor` as crowdFactor() gives it): peers get that many times as long to connect and to prove
 * themselves, where nobody has set how long, and what is looked at again and again is looked at less often.
 */
export function expectCrowd(factor: number, params: ParamTable, bml: Bml, modules: readonly BtlModule[]): void {
  const limit = (name: 'bml_connect_timeout_ms' | 'btl_base_handshake_timeout_ms'): number =>
    params.isSet(name) ? params.int(name) : limitInCrowd(params.int(name), factor);
  const connectTimeoutMs = limit('bml_connect_timeout_ms');
  const handshakeTimeoutMs = limit('btl_base_handshake_timeout_ms');
  bml.options.crowd = factor;
  bml.options.connectTimeoutMs = connectTimeoutMs;
  for (const module of modules) module.expectCrowd?.({ factor, connectTimeoutMs, handshakeTimeoutMs });
}
