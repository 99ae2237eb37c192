// The memory of a program of C as the binding sees it, with the alias of the native part and without: what is written is there, and stays there
// when the memory grows.
import { describe, expect, test } from 'vitest';
import { LinearMemory, type MakeAlias } from '../../../src/wasm/linear-memory.ts';
import { wasm } from '../../../src/wasm/webassembly.ts';
import { describeNative, native } from '../native/native-fixture.ts';

const PAGE_BYTES = 65536;

interface Growing {
  readonly buffer: ArrayBufferLike;
  grow(pages: number): number;
}

const memoryOf = (pages: number): Growing => new wasm.Memory({ initial: pages, maximum: 256, shared: true }) as unknown as Growing;

const refused: MakeAlias = () => {
  throw new Error('ERR_NO_EXTERNAL');
};

function staysAsItGrows(makeAlias: MakeAlias | undefined): void {
  test('what was handed out before stays the same memory when it grows', () => {
    const memory = memoryOf(2);
    const linear = new LinearMemory(memory, makeAlias);
    const before = linear.view(1000, 500);
    before.fill(3);
    for (let pages = 0; pages < 200; pages++) {
      memory.grow(1);
      const at = memory.buffer.byteLength - 8;
      linear.setInt(at, pages);
      expect(linear.view(at, 8)[0]).toBe(pages);
      expect(linear.array('Int32Array', at, 2)[0]).toBe(pages);
      expect(new Int32Array(memory.buffer)[at / 4]).toBe(pages);
    }
    new Uint8Array(memory.buffer)[1499] = 5;
    expect([before[0], before[499], linear.view(1000, 500)[499]]).toEqual([3, 5, 5]);
    expect([linear.holds(before), linear.holds(linear.view(8, 8)), linear.holds(new Uint8Array(8))]).toEqual([true, true, false]);
    expect(linear.setText(16, 'text', 8)).toBe(4);
    expect(linear.text(16)).toBe('text');
    expect(() => linear.check(memory.buffer.byteLength - 4, 8, 'it')).toThrow(/it is 8 bytes at address .* beyond the end/);
  });
}

describe('without an alias', () => staysAsItGrows(undefined));
describe('where none is permitted', () => staysAsItGrows(refused));
describeNative('with an alias', () => staysAsItGrows((bytes) => native.memoryAlias(bytes)));

test('an alias is made again only when the memory is a quarter longer', () => {
  const lengths: number[] = [];
  const makeAlias: MakeAlias = ({ length }) => {
    lengths.push(length / PAGE_BYTES);
    return new ArrayBuffer(length);
  };
  const memory = memoryOf(4);
  const linear = new LinearMemory(memory, makeAlias);
  for (let pages = 4; pages < 12; pages++) {
    memory.grow(1);
    linear.view(memory.buffer.byteLength - 1, 1);
  }
  expect(lengths).toEqual([4, 5, 7, 9, 12]);
  expect(linear.view(0, 8).buffer).toBeInstanceOf(ArrayBuffer);
});
