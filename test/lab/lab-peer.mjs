// Traffic for the lab's self-test, with nothing of multirail in it: plain node:net and node:dgram. It runs inside a node.
//   tcp-sink ADDRESS PORT           reads what comes
//   tcp-source FROM ADDRESS PORT    sends as fast as TCP lets it; connects again when a connection ends
//   udp-sink ADDRESS PORT           reads what comes
//   udp-source FROM ADDRESS PORT    sends a datagram every few milliseconds, whether or not it arrives
// It prints one line, `ready`, when it listens or starts to send.
import { createSocket } from 'node:dgram';
import { connect, createServer } from 'node:net';

const RECONNECT_MS = 100;
const DATAGRAM_EVERY_MS = 4;
const chunk = Buffer.alloc(64 << 10, 0x5a);
const [role, ...args] = process.argv.slice(2);
const ready = () => process.stdout.write('ready\n');

function tcpSource(localAddress, host, port) {
  const socket = connect({ localAddress, host, port: Number(port) });
  const fill = () => {
    while (socket.write(chunk));
  };
  socket.on('connect', fill);
  socket.on('drain', fill);
  socket.on('error', () => {});
  socket.on('close', () => setTimeout(tcpSource, RECONNECT_MS, localAddress, host, port));
}

function udpSource(localAddress, host, port) {
  const socket = createSocket(localAddress.includes(':') ? 'udp6' : 'udp4');
  socket.on('error', () => {});
  socket.bind(0, localAddress, () => {
    // An error (no route, interface down) is what the test wants to outlive.
    setInterval(() => socket.send(chunk.subarray(0, 200), Number(port), host, () => {}), DATAGRAM_EVERY_MS);
  });
}

const roles = {
  'tcp-sink': (address, port) =>
    createServer((socket) => {
      socket.on('error', () => {});
      socket.resume();
    }).listen({ host: address, port: Number(port) }, ready),
  'tcp-source': (...rest) => {
    tcpSource(...rest);
    ready();
  },
  'udp-sink': (address, port) => createSocket(address.includes(':') ? 'udp6' : 'udp4').bind(Number(port), address, ready),
  'udp-source': (...rest) => {
    udpSource(...rest);
    ready();
  },
};

roles[role](...args);
