// What ws rails need of Node's HTTP and of the package ws: loaded when the first module of them opens, since a rank without ws rails would
// only start slower for it.
import { MultirailError } from '../../errors.ts';

async function load() {
  const [http, https, tls, ws] = await Promise.all([import('node:http'), import('node:https'), import('node:tls'), import('ws')]);
  return {
    createHttpServer: http.createServer,
    createHttpsServer: https.createServer,
    connectTls: tls.connect,
    WebSocket: ws.WebSocket,
    WebSocketServer: ws.WebSocketServer,
  };
}

let loaded: Awaited<ReturnType<typeof load>> | undefined;

export async function loadWeb(): Promise<void> {
  loaded ??= await load();
}

/** Throws ERR_INTERNAL before loadWeb() has resolved. */
export function web(): Awaited<ReturnType<typeof load>> {
  if (loaded === undefined) throw new MultirailError('ERR_INTERNAL', 'ws: a module is used before it was opened');
  return loaded;
}
