// The error of a member that has failed, as it stands in a slot in place of its data: JSON, as much of it as fits.
import { ERROR_CODES, type ErrorCode, type MultirailError } from '../../../errors.ts';

/** Bytes of its text that are tried first. */
const TEXT_BYTES = 160;

/** Returns how many bytes it takes. */
export function writeError({ code, message, peer }: MultirailError, slot: Uint8Array): number {
  const text = message.slice(code.length + 2);
  for (let length = TEXT_BYTES; length >= 0; length -= 20) {
    const bytes = Buffer.from(JSON.stringify({ code, text: text.slice(0, length), peer }));
    if (bytes.length > slot.length) continue;
    slot.set(bytes);
    return bytes.length;
  }
  return new TextEncoder().encodeInto(JSON.stringify({ code }), slot).written;
}

/** Whatever stands there: `peer` is a world rank. */
export function readError(bytes: Uint8Array): { code: ErrorCode; text: string; peer: number | undefined } {
  let given: { code?: unknown; text?: unknown; peer?: unknown } | null;
  try {
    given = JSON.parse(new TextDecoder().decode(bytes));
  } catch {
    given = null;
  }
  const { code, text, peer } = given ?? {};
  return {
    code: typeof code === 'string' && Object.hasOwn(ERROR_CODES, code) ? (code as ErrorCode) : 'ERR_INTERNAL',
    text: String(text ?? 'the call has failed'),
    peer: Number.isSafeInteger(peer) ? (peer as number) : undefined,
  };
}
