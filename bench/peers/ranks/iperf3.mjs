// iperf3 over loopback as one cell of the bench: one stream, blocks of 1 MiB, one second. With `--cubic` at that congestion control.
// Imports node:*.
import { spawn, spawnSync } from 'node:child_process';
import process from 'node:process';

const PORT = 5299;
const server = spawn('iperf3', ['-s', '-1', '-B', '127.0.0.1', '-p', String(PORT), '--forceflush'], {
  stdio: ['ignore', 'pipe', 'inherit'],
});
await new Promise((resolve, reject) => {
  server.stdout.once('data', resolve);
  server.once('exit', () => reject(new Error('the server of iperf3 ended')));
});
const args = ['-c', '127.0.0.1', '-p', String(PORT), '-t', '1', '-O', '0.3', '-l', '1M', '-J'];
if (process.argv.includes('--cubic')) args.push('-C', 'cubic');
const client = spawnSync('iperf3', args, { encoding: 'utf8', timeout: 20_000 });
const rate = JSON.parse(client.stdout)?.end?.sum_received?.bits_per_second;
if (!(rate > 0)) throw new Error(`iperf3: ${client.stdout.slice(0, 300)}`);
process.stdout.write(`${JSON.stringify({ metric: 'bandwidth', size: 1048576, value: Number((rate / 8e6).toPrecision(6)) })}\n`);
server.kill();
process.exit(0);
