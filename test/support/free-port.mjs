// A port of this machine for a server that has to be told one.
import { createServer } from 'node:net';

/** A port of the loopback address that was free a moment ago: somebody else may take it before it is used. */
export async function freePort() {
  const server = createServer();
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address();
  await new Promise((resolve) => server.close(resolve));
  return port;
}
