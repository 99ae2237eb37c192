// A network namespace with two links to it, for tests of a job on two hosts. Needs root and the `ip` command.
import { execFileSync, spawnSync } from 'node:child_process';

// Names and subnets by process id, so that two runs on one machine do not meet.
const ID = String(process.pid % 100_000);

export const ip = (...args: string[]) => execFileSync('ip', args, { stdio: ['ignore', 'ignore', 'pipe'] });

/** `name` (two letters) and `net` (the links are 10.net and 10.net+1) are one test file's own: files run at the same time. */
export class TwoLinks {
  readonly namespace: string;
  readonly links: readonly { outside: string; inside: string; outsideAddress: string; insideAddress: string }[];

  constructor(name: string, net: number) {
    this.namespace = `${name[0]}r${name[1]}-${ID}`;
    this.links = [0, 1].map((link) => {
      const subnet = `10.${net + link}.${process.pid % 250}`;
      return {
        outside: `${name}${ID}o${link}`,
        inside: `${name}${ID}i${link}`,
        outsideAddress: `${subnet}.1`,
        insideAddress: `${subnet}.2`,
      };
    });
  }

  /** Why it cannot be had here; undefined once it stands. */
  setUp(): string | undefined {
    if (process.platform !== 'linux' || process.getuid?.() !== 0) return 'needs root on Linux';
    if (spawnSync('ip', ['-V']).status !== 0) return 'needs the ip command';
    try {
      ip('netns', 'add', this.namespace);
      ip('-n', this.namespace, 'link', 'set', 'lo', 'up');
      for (const { outside, inside, outsideAddress, insideAddress } of this.links) {
        ip('link', 'add', outside, 'type', 'veth', 'peer', 'name', inside, 'netns', this.namespace);
        ip('addr', 'add', `${outsideAddress}/24`, 'dev', outside);
        ip('-n', this.namespace, 'addr', 'add', `${insideAddress}/24`, 'dev', inside);
        ip('link', 'set', outside, 'up');
        ip('-n', this.namespace, 'link', 'set', inside, 'up');
        // A host may pace by itself: BBR held 100 KB for 60 ms that nothing stood in the way of, so that a sound rail was left.
        const route = ['route', 'replace', `${outsideAddress.replace(/1$/, '0')}/24`];
        ip(...route, 'dev', outside, 'src', outsideAddress, 'congctl', 'reno');
        ip('-n', this.namespace, ...route, 'dev', inside, 'src', insideAddress, 'congctl', 'reno');
      }
    } catch (error) {
      this.tearDown();
      return `network namespaces do not work here: ${(error as Error).message}`;
    }
    return undefined;
  }

  tearDown(): void {
    spawnSync('ip', ['netns', 'del', this.namespace]);
    for (const { outside } of this.links) spawnSync('ip', ['link', 'del', outside]);
  }
}
