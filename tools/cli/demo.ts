// `multirail demo`: the one command that shows what multirail is for. It runs two ranks over two TCP rails on loopback; rail 1 dies in
// silence at 2 s and is back at 4 s; the run takes 6 s, and every message is audited.
import type { Command } from 'commander';
import { runBenchJob } from './bench.ts';

const DEMO_WORDS: readonly string[] = ['--pull', '1@2s', '--restore', '1@4s', '--seconds', '6', '--verify'];

export function register(program: Command): void {
  program
    .command('demo')
    .description('run two ranks over two rails, pull one rail and put it back while data flows, and audit every message')
    .option('--out <folder>', 'folder for the plot', 'out')
    .addHelpText('after', `\nThe same as: multirail bench bw ${DEMO_WORDS.join(' ')} --mca btl self,tcp --mca btl_tcp_links 2`)
    .action((options: { out: string }) => runBenchJob([...DEMO_WORDS, '--out', options.out], { btl: 'self,tcp', btl_tcp_links: '2' }));
}
