// Numbered datagrams with their times, and a stream whose bytes are known, for tests of what a rail does to them. It runs inside a node;
// all nodes share the machine's clock.
//   sink ADDRESS PORT                              reads datagrams; each line on standard input asks what came since the last one
//   source FROM ADDRESS PORT COUNT PER_MS BYTES    sends COUNT datagrams, PER_MS a millisecond
//   stream-sink ADDRESS PORT                       reads one stream to its end
//   stream-source FROM ADDRESS PORT BYTES          sends one
// Sinks print `ready`. The answer to a line is one line of JSON: [number, sent ns, received ns, whether its bytes are whole][]; at the end
// of a stream it is [bytes, whether they are right]. Sources end when all is sent.
import { createSocket } from 'node:dgram';
import { connect, createServer } from 'node:net';
import { createInterface } from 'node:readline';

const HEAD_BYTES = 16;
const RECEIVE_BYTES = 4 << 20;
const FILL = 0xa5;
const PERIOD_BYTES = 251;
const [role, ...args] = process.argv.slice(2);
const nowNs = () => Number(process.hrtime.bigint());
const say = (value) => console.log(JSON.stringify(value));

function sink(address, port) {
  let came = [];
  const socket = createSocket({ type: 'udp4', recvBufferSize: RECEIVE_BYTES }).bind(Number(port), address, () => console.log('ready'));
  socket.on('message', (message) => {
    const isWhole = message.subarray(HEAD_BYTES).every((byte) => byte === FILL);
    came.push([message.readUInt32LE(0), message.readDoubleLE(8), nowNs(), isWhole]);
  });
  createInterface({ input: process.stdin }).on('line', () => {
    say(came);
    came = [];
  });
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

function streamSink(address, port) {
  const period = Buffer.from(Array.from({ length: PERIOD_BYTES }, (_, i) => i));
  const server = createServer((socket) => {
    let bytes = 0;
    let isRight = true;
    socket.on('data', (part) => {
      for (let i = 0; i < part.length; i++) isRight &&= part[i] === period[(bytes + i) % PERIOD_BYTES];
      bytes += part.length;
    });
    socket.on('end', () => {
      say([bytes, isRight]);
      server.close();
    });
  }).listen({ host: address, port: Number(port) }, () => console.log('ready'));
}

function streamSource(localAddress, host, port, bytes) {
  const all = Buffer.alloc(Number(bytes));
  for (let i = 0; i < all.length; i++) all[i] = i % PERIOD_BYTES;
  connect({ localAddress, host, port: Number(port) })
    .end(all)
    .resume();
}

({ sink, source, 'stream-sink': streamSink, 'stream-source': streamSource })[role](...args);
