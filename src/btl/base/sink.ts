// Writing a payload that is one piece into its sink (B4).
import { assert } from '../../util/assert.ts';
import type { Sink } from '../btl.ts';

/** Nothing is written where the sink is a discard or was revoked. */
export function fillSink(sink: Sink, payload: Uint8Array): void {
  if (sink.views.length === 0 || sink.revoked) return;
  let at = 0;
  for (const view of sink.views) {
    view.set(view.length === payload.length ? payload : payload.subarray(at, at + view.length));
    at += view.length;
  }
  assert(at === payload.length, 'a sink must have exactly the length of its payload');
}
