// Who may talk to the dashboard: clients that know the token, under a name of this machine. The socket listens on loopback only, but every
// user of the machine, and every page in the browser, can reach it there. The token keeps the users out. The Host header keeps out pages
// whose name was made to point to 127.0.0.1 (DNS rebinding). The Origin header keeps other pages from opening the WebSocket or sending
// orders, even if they learn the token.
import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';
import { MultirailError } from '../../src/errors.ts';

const TOKEN_BYTES = 32;
const TOKEN_CHARACTERS_MIN = 16;

export const newToken = (): string => randomBytes(TOKEN_BYTES).toString('base64url');

/** A token that the user chose, for instance to name it in the configuration of a collector. */
export function checkToken(text: string, origin: string): string {
  const token = text.trim();
  if (!/^[\w.~-]+$/.test(token) || token.length < TOKEN_CHARACTERS_MIN) {
    throw new MultirailError(
      'ERR_CONFIG',
      `${origin} holds no valid token: expected at least ${TOKEN_CHARACTERS_MIN} letters, digits, or . _ ~ -, and nothing else`,
    );
  }
  return token;
}

/** In a time that does not depend on where they differ. */
export function tokenEquals(given: string, expected: string): boolean {
  const digest = (text: string) => createHash('sha256').update(text).digest();
  return timingSafeEqual(digest(given), digest(expected));
}

/** From `Authorization: Bearer TOKEN`. */
export function bearerToken(authorization: string | undefined): string | undefined {
  return /^Bearer +([\w.~-]+) *$/i.exec(authorization ?? '')?.[1];
}

const LOOPBACK_NAMES = ['127.0.0.1', 'localhost', '[::1]'];

/** A Host header that names this machine itself. Its port is not looked at: it may have been forwarded (ssh -L). */
export function isLoopbackHost(host: string | undefined): boolean {
  const match = /^(\[[0-9a-f:]+\]|[^:[\]]+)(?::\d{1,5})?$/i.exec(host ?? '');
  return match !== null && LOOPBACK_NAMES.includes(match[1].toLowerCase());
}

/** Browsers say from which page a request comes; other programs say nothing. */
export function isOwnOrigin(origin: string | undefined, host: string | undefined): boolean {
  return origin === undefined || origin.toLowerCase() === `http://${host?.toLowerCase()}`;
}
