// Operations as spans of OpenTelemetry: every send, receive and collective of this rank, without a change to the code that makes them.
// Run it with: npx multirail run -n 2 examples/tracing-opentelemetry.mjs
// Needs the package @opentelemetry/api. In a program that has an SDK of OpenTelemetry, the spans go where that sends them, and the part below
// "without an SDK" is left out.
import { subscribe } from 'node:diagnostics_channel';
import { SpanKind, SpanStatusCode, trace } from '@opentelemetry/api';
import { init, Op } from 'multirail';

// ---- without an SDK: a provider that prints what ends
class PrintedSpan {
  constructor(name, { attributes }, context) {
    Object.assign(this, { name, attributes: { ...attributes }, context });
  }
  spanContext() {
    return { traceId: '0'.repeat(32), spanId: '0'.repeat(16), traceFlags: 0 };
  }
  setAttributes(more) {
    Object.assign(this.attributes, more);
    return this;
  }
  setStatus(status) {
    this.status = status;
    return this;
  }
  end() {
    const state = this.status?.code === SpanStatusCode.ERROR ? `failed: ${this.status.message}` : 'ok';
    console.log(`span ${this.name} ${JSON.stringify(this.attributes)} ${state}`);
  }
}
trace.setGlobalTracerProvider({ getTracer: () => ({ startSpan: (name, options, context) => new PrintedSpan(name, options, context) }) });

// ---- the bridge: ten lines that any program can take
const tracer = trace.getTracer('multirail');
const spans = new WeakMap();
subscribe('multirail:operation:start', (operation) => {
  const kind = operation.operation === 'recv' ? SpanKind.CONSUMER : SpanKind.PRODUCER;
  spans.set(
    operation,
    tracer.startSpan(`multirail ${operation.operation}`, { kind, attributes: { rank: operation.rank, comm: operation.comm } }),
  );
});
subscribe('multirail:operation:end', (operation) => {
  const span = spans.get(operation);
  const { peer, tag, bytes, root, error } = operation;
  span?.setAttributes(Object.fromEntries(Object.entries({ peer, tag, bytes, root }).filter(([, value]) => value !== undefined)));
  if (error !== undefined) span?.setStatus({ code: SpanStatusCode.ERROR, message: error.code });
  span?.end();
});

// ---- a program that knows nothing of it
const mpi = await init();
const { world } = mpi;
if (world.size < 2) throw new Error('needs two ranks: npx multirail run -n 2 examples/tracing-opentelemetry.mjs');
const numbers = new Float64Array(1000);
if (world.rank === 0) await world.send(numbers, 1, 5);
if (world.rank === 1) await world.recv(numbers, 0, 5);
await world.allreduce(Float64Array.of(world.rank), new Float64Array(1), Op.SUM);
await mpi.finalize();
