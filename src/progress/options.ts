// Engine options from parameters.
import type { Params } from '../btl/btl.ts';
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
      railTimeoutMs: params.int('bml_rail_timeout_ms'),
      stallTimeoutMs: params.int('bml_stall_timeout_ms'),
      trialMinMs: params.int('bml_trial_min_ms'),
      trialMaxMs: params.int('bml_trial_max_ms'),
      probeIdleMs: params.int('bml_probe_idle_ms'),
      redialMinMs: params.int('bml_redial_min_ms'),
      redialMaxMs: params.int('bml_redial_max_ms'),
      connectTimeoutMs: params.int('bml_connect_timeout_ms'),
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
