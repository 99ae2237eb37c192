// Encoding and decoding of the out-of-band channel's envelopes, by the code that protobufjs-cli makes of oob.proto ahead of time: to read the
// definition and to compile a codec from it at each start took 18 ms of a rank's processor time. Pure: no sockets, no timers.
import { MultirailError } from '../../errors.ts';
import { type Envelope, MESSAGE_BYTES_MAX, type OobBodies, type OobKind } from './messages.ts';
import { multirail } from './proto.js';

const { Envelope: EnvelopeCodec } = multirail.oob.v1;

/** Encodes one envelope. Throws ERR_OOB when it is larger than the other side would take. */
export function encodeEnvelope<K extends OobKind>(sequence: number, acknowledged: number, kind: K, body: OobBodies[K]): Uint8Array {
  const bytes = EnvelopeCodec.encode({ sequence, acknowledged, [kind]: body }).finish();
  if (bytes.length > MESSAGE_BYTES_MAX) {
    throw new MultirailError(
      'ERR_OOB',
      `out-of-band message "${kind}" has ${bytes.length} bytes; at most ${MESSAGE_BYTES_MAX} are allowed`,
    );
  }
  return bytes;
}

/** Decodes one envelope. Throws ERR_PROTOCOL for everything that is not one. */
export function decodeEnvelope(bytes: Uint8Array): Envelope {
  let plain: Record<string, unknown>;
  try {
    // Numbers of 64 bits come as Number; what is beyond 2^53 is refused below.
    plain = EnvelopeCodec.toObject(EnvelopeCodec.decode(bytes), { longs: Number, defaults: true, arrays: true, oneofs: true });
  } catch (error) {
    throw new MultirailError('ERR_PROTOCOL', `not an out-of-band message: ${(error as Error).message}`, { cause: error });
  }
  const kind = plain.body as OobKind | undefined;
  const { sequence, acknowledged } = plain as { sequence: number; acknowledged: number };
  if (kind === undefined || !Number.isSafeInteger(sequence) || !Number.isSafeInteger(acknowledged)) {
    throw new MultirailError('ERR_PROTOCOL', 'not an out-of-band message: no body of a known kind, or a number out of range');
  }
  const body = plain[kind] as Record<string, unknown>;
  for (const [name, value] of Object.entries(body)) {
    if (typeof value === 'number' && !Number.isSafeInteger(value)) {
      throw new MultirailError('ERR_PROTOCOL', `out-of-band message "${kind}": ${name} is out of range`);
    }
    // The virtual field that protobufjs adds for an optional one.
    if (name.startsWith('_')) delete body[name];
  }
  return { sequence, acknowledged, kind, body } as unknown as Envelope;
}
