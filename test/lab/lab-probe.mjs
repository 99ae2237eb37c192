// Numbered datagrams with their times, for tests of what a rail does to each. Runs inside a node; all nodes share the machine's clock.
//   sink ADDRESS PORT                              takes them; a line on standard input asks what came
//   source FROM ADDRESS PORT COUNT PER_MS BYTES    sends so many, so many a millisecond
// The sink prints `ready`, and then for each line of input one of JSON: [number, sent ns, received ns, whether its bytes are whole][].
// The source ends when the last is sent. Imports node: modules only.
import { createSocket } from 'node:dgram';
import { createInterface } from 'node:readline';

const HEAD_BYTES = 16;
const RECEIVE_BYTES = 4 << 20;
const FILL = 0xa5;
const [role, ...args] = process.argv.slice(2);
const nowNs = () => Number(process.hrtime.bigint());

function sink(address, port) {
  const came = [];
  const socket = createSocket({ type: 'udp4', recvBufferSize: RECEIVE_BYTES }).bind(Number(port), address, () => console.log('ready'));
  socket.on('message', (message) => {
    const isWhole = message.subarray(HEAD_BYTES).every((byte) => byte === FILL);
    came.push([message.readUInt32LE(0), message.readDoubleLE(8), nowNs(), isWhole]);
  });
  createInterface({ input: process.stdin }).on('line', () => console.log(JSON.stringify(came)));
}

function source(from, address, port, count, perMs, bytes) {
  const socket = createSocket('udp4').bind(0, from, () => {
    const startNs = nowNs();
    let sent = 0;
    let acknowledged = 0;
    const tick = setInterval(() => {
      // What a late timer owes is sent at once, but never the whole of it.
      const due = Math.min(Number(count), sent + 64, Math.ceil(((nowNs() - startNs) / 1e6) * Number(perMs)));
      while (sent < due) {
        const message = Buffer.alloc(Number(bytes), FILL);
        message.writeUInt32LE(sent++, 0);
        message.writeDoubleLE(nowNs(), 8);
        socket.send(message, Number(port), address, () => {
          acknowledged++;
          if (acknowledged === Number(count)) socket.close();
        });
      }
      if (sent >= Number(count)) clearInterval(tick);
    }, 1);
  });
  socket.on('error', () => {});
}

({ sink, source })[role](...args);
