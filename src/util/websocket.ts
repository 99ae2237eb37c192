// What the two WebSocket servers of this package (ws rails and the out-of-band channel) demand of an upgrade beyond the checks of the `ws`
// package: exactly the version of RFC 6455, because that package also accepts an older draft.

const VERSION = '13';

/** The answer to an upgrade of another version, after which the connection is closed; undefined: the version is right. */
export function refusalOfVersion(version: string | undefined): string | undefined {
  if (version === VERSION) return undefined;
  const head = ['HTTP/1.1 426 Upgrade Required', `Sec-WebSocket-Version: ${VERSION}`, 'Connection: close', 'Content-Length: 0'];
  return `${head.join('\r\n')}\r\n\r\n`;
}

/** For the servers' option `handleProtocols`: a subprotocol that a client offers is not taken, and not named in the answer. */
export const noSubprotocol = (): false => false;
