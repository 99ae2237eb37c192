// The PMI-1 client against a starter in this process that keeps to the limits it names, as hydra and Slurm do, or breaks the protocol.
import { Duplex } from 'node:stream';
import { describe, expect, test } from 'vitest';
import { openPmiFd, PmiClient } from '../../../src/launch/starters/pmi-client.ts';

/** One starter for `size` processes; `answer` may replace a reply. */
class Starter {
  readonly log: string[] = [];
  readonly store = new Map<string, string>();
  readonly streams: Duplex[] = [];
  private readonly size: number;
  private readonly valueBytesMax: number;
  private readonly answer: (line: string) => string | undefined;
  private inBarrier = 0;

  constructor(size: number, valueBytesMax = 1024, answer: (line: string) => string | undefined = () => undefined) {
    this.size = size;
    this.valueBytesMax = valueBytesMax;
    this.answer = answer;
  }

  client(): PmiClient {
    const stream: Duplex = new Duplex({
      read: () => undefined,
      write: (chunk: Buffer, _encoding, done) => {
        for (const line of chunk.toString().split('\n').slice(0, -1)) this.take(stream, line);
        done();
      },
    });
    this.streams.push(stream);
    return new PmiClient(stream);
  }

  private take(stream: Duplex, line: string): void {
    this.log.push(line);
    const field = (name: string) => new RegExp(`\\b${name}=(\\S+)`).exec(line)?.[1] ?? '';
    const say = (text: string) => {
      // In two pieces, as a stream may deliver it.
      stream.push(text.slice(0, 7));
      setImmediate(() => stream.push(`${text.slice(7)}\n`));
    };
    const replaced = this.answer(line);
    if (replaced !== undefined) return say(replaced);
    switch (field('cmd')) {
      case 'init':
        return say('cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0');
      case 'get_maxes':
        return say(`cmd=maxes kvsname_max=256 keylen_max=64 vallen_max=${this.valueBytesMax}`);
      case 'get_my_kvsname':
        return say('cmd=my_kvsname kvsname=kvs_17_0');
      case 'put':
        if (field('key').length >= 64 || field('value').length >= this.valueBytesMax) return say('cmd=put_result rc=-1 msg=too_long');
        this.store.set(field('key'), field('value'));
        return say('cmd=put_result rc=0 msg=success');
      case 'get': {
        const value = this.store.get(field('key'));
        return say(value === undefined ? 'cmd=get_result rc=-1 msg=key_not_found' : `cmd=get_result rc=0 msg=success value=${value}`);
      }
      case 'barrier_in':
        if (++this.inBarrier < this.size) return;
        this.inBarrier = 0;
        for (const each of this.streams) each.push('cmd=barrier_out rc=0\n');
        return;
      case 'finalize':
        return say('cmd=finalize_ack');
      default:
        return;
    }
  }
}

describe('PMI-1', () => {
  test('what one puts, the others get after the barrier', async () => {
    const starter = new Starter(3);
    const clients = [starter.client(), starter.client(), starter.client()];
    await Promise.all(clients.map((client) => client.init()));
    await clients[0].put('where', '{"url": "ws://[::1]:5/x", "secret": "a+b/c==\\n"}');
    await Promise.all(clients.map((client) => client.barrier()));
    expect(await clients[2].get('where')).toBe('{"url": "ws://[::1]:5/x", "secret": "a+b/c==\\n"}');
    await Promise.all(clients.map((client) => client.finalize()));
    expect(starter.log.filter((line) => line === 'cmd=finalize')).toHaveLength(3);
    // Nothing that has a meaning in the protocol is in a value.
    for (const value of starter.store.values()) expect(value).toMatch(/^[\w:-]+$/);
  });

  test.each([33, 64, 1024])('values are cut to the limit of %i bytes', async (valueBytesMax) => {
    const starter = new Starter(1, valueBytesMax);
    const client = starter.client();
    await client.init();
    const texts = ['', 'x', 'é'.repeat(valueBytesMax), 'z'.repeat(valueBytesMax * 3 - 1), 'z'.repeat(5000)];
    for (const [i, text] of texts.entries()) {
      await client.put(`key${i}`, text);
      expect(await client.get(`key${i}`)).toBe(text);
    }
    expect(starter.store.size).toBeGreaterThan(texts.length);
    for (const value of starter.store.values()) expect(value.length).toBeLessThan(valueBytesMax);
  });

  test('a key that is too long, and one that nobody has put, are refused', async () => {
    const client = new Starter(1).client();
    await client.init();
    await expect(client.put('k'.repeat(64), 'v')).rejects.toThrow('the key kkk');
    await expect(client.get('nothing')).rejects.toThrow(/get failed: rc=-1 key_not_found/);
  });

  test('abort goes out in one word, and is not answered', async () => {
    const starter = new Starter(1);
    const client = starter.client();
    await client.init();
    await client.abort(7, 'Error: so far\nand no further');
    expect(starter.log.at(-1)).toBe('cmd=abort exitcode=7 error_msg=Error:_so_far_and_no_further');
  });

  test('a starter that is gone, or speaks something else, fails what waits', async () => {
    const gone = new Starter(2);
    const client = gone.client();
    await client.init();
    const waiting = client.barrier();
    gone.streams[0].destroy();
    await expect(waiting).rejects.toThrow('barrier_in: the starter closed the connection');
    await expect(client.barrier()).rejects.toThrow('the connection is over');
    // The end is not spoilt by it.
    await client.finalize();
    const wrong = (line: string, reply: string) =>
      new Starter(1, 1024, (asked) => (asked.includes(line) ? reply : undefined)).client().init();
    await expect(wrong('init', 'HTTP/1.1 400')).rejects.toThrow('init was answered by "HTTP/1.1 400"');
    await expect(wrong('init', 'cmd=response_to_init pmi_version=2 rc=0')).rejects.toThrow('version 2');
    await expect(wrong('get_maxes', 'cmd=maxes keylen_max=64')).rejects.toThrow('vallen_max=undefined');
    await expect(wrong('get_my_kvsname', 'cmd=my_kvsname rc=-1 msg=no')).rejects.toThrow('get_my_kvsname failed: rc=-1 no');
  });

  test('a reply without end does not fill the memory', async () => {
    const starter = new Starter(1, 1024, (line) => (line.includes('cmd=init') ? 'x'.repeat(70_000) : undefined));
    await expect(starter.client().init()).rejects.toThrow(/without end|answered by/);
    const unasked = new Starter(1);
    const client = unasked.client();
    await client.init();
    unasked.streams[0].push('cmd=barrier_out\n');
    await new Promise((resolve) => setImmediate(resolve));
    await expect(client.barrier()).rejects.toThrow('the connection is over');
  });

  test('a descriptor that is no socket is told as such', () => {
    expect(() => openPmiFd(1_000_000)).toThrow('PMI_FD=1000000 is not a socket');
  });
});
