// The types of what is used of proto.js, the code that protobufjs-cli makes of oob.proto.

interface Codec {
  /** Fields that are missing, undefined or null are left out. */
  encode(message: object): { finish(): Uint8Array };
  /** Throws for bytes that are not such a message. */
  decode(bytes: Uint8Array): object;
  toObject(message: object, options: { longs: NumberConstructor; defaults: true; arrays: true; oneofs: true }): Record<string, unknown>;
}

export const multirail: { oob: { v1: { Envelope: Codec } } };
