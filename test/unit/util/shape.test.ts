// What objects of the hot path look like to V8: the same before their rail has failed and after.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setFlagsFromString } from 'node:v8';
import { runInThisContext } from 'node:vm';
import ts from 'typescript';
import { describe, expect, test } from 'vitest';
import { Rail } from '../../../src/bml/rail.ts';
import type { BtlEndpoint } from '../../../src/btl/btl.ts';
import { newPacket } from '../../../src/pml/hdr.ts';
import { settleShape } from '../../../src/util/shape.ts';

// For this process: the function is compiled when it is called first.
setFlagsFromString('--allow-natives-syntax');
const haveSameShape = runInThisContext('(a, b) => %HaveSameMap(a, b)') as (a: object, b: object) => boolean;

const endpoint = { plan: { key: 'tcp:0', attributes: { bandwidthMBps: 125, latencyUs: 50 } } } as unknown as BtlEndpoint;

describe('settleShape', () => {
  const classOfItsOwn = (settles: boolean) =>
    class {
      whole = 7;
      waitMs = 0;
      limit = 0;
      isOver = false;
      reason: object | number | undefined = undefined;
      waiting: object[] = [];
      constructor() {
        if (settles) settleShape(this, ['limit']);
      }
    };

  test.each([false, true])('what is written later changes the shape of those that were not settled (%s)', (settles) => {
    const Made = classOfItsOwn(settles);
    const before = new Made();
    const after = new Made();
    after.waitMs = 0.25;
    after.limit = 2 ** 40;
    after.reason = 1;
    after.reason = {};
    expect(haveSameShape(before, after)).toBe(settles);
    expect(haveSameShape(new Made(), after)).toBe(true);
  });

  test('every field keeps what it holds', () => {
    const Made = classOfItsOwn(true);
    for (const made of [new Made(), new Made()])
      expect(made).toEqual({ whole: 7, waitMs: 0, limit: 0, isOver: false, reason: undefined, waiting: [] });
    const plain = { ms: null, textMs: 'a', totalMs: 3, list: [1] };
    settleShape(plain);
    expect(plain).toEqual({ ms: null, textMs: 'a', totalMs: 3, list: [1] });
  });

  test('a name that is no number is a mistake', () => {
    expect(() => settleShape({ a: 1 }, ['b'])).toThrow(/has no number b/);
  });
});

describe('objects of the hot path', () => {
  test('a rail that has failed, was on trial and has been measured', () => {
    const before = new Rail(1, 0, endpoint);
    const after = new Rail(1, 1, endpoint);
    after.state = 'DOWN';
    after.lastReason = { kind: 'silent', text: 'nothing' };
    after.attempt = { epoch: 2, deadlineAliveMs: 1000.5 };
    for (const name of ['backoffMs', 'trialMs', 'leadAliveMs', 'faultlessSinceAliveMs', 'trialRate', 'slowRate', 'fragScale'] as const)
      after[name] = 1.5;
    after.counters.downMs += 0.75;
    after.counters.trialMs += 0.75;
    after.avoided.isSet = true;
    after.avoided.forMs = 1000.25;
    expect(haveSameShape(before, after)).toBe(true);
    expect(haveSameShape(before.counters, after.counters)).toBe(true);
    expect(haveSameShape(before.avoided, after.avoided)).toBe(true);
  });

  test('a packet of a late epoch', () => {
    const before = newPacket();
    const after = newPacket();
    after.epoch = 2 ** 31 + 0.5;
    expect(haveSameShape(before, after)).toBe(true);
  });
});

// One that comes into being later makes another shape, for which no compiled code is there.
test('fields that may be undefined are undefined from the start, where code is hot', () => {
  const sources = join(import.meta.dirname, '../../../src');
  const files = ['bml', 'pml', 'btl', 'progress'].flatMap((room) =>
    readdirSync(join(sources, room), { recursive: true, encoding: 'utf8' }).map((name) => join(room, name)),
  );
  const hot = files.filter((file) => file.endsWith('.ts'));
  const late = hot.flatMap((file) => {
    const source = ts.createSourceFile(file, readFileSync(join(sources, file), 'utf8'), ts.ScriptTarget.ES2022, true);
    return source.statements
      .filter(ts.isClassDeclaration)
      .flatMap((node) => lateFields(node).map((name) => `${file}: ${node.name?.text}.${name}`));
  });
  expect(hot.length).toBeGreaterThan(80);
  expect(late).toEqual([]);
});

/** Fields that neither their declaration nor the constructor sets. */
function lateFields(node: ts.ClassDeclaration): string[] {
  const made = node.members.find(ts.isConstructorDeclaration)?.getText() ?? '';
  const fields = node.members.filter(ts.isPropertyDeclaration).filter(({ initializer, type, modifiers, exclamationToken }) => {
    const isElsewhere = modifiers?.some(({ kind }) => kind === ts.SyntaxKind.AbstractKeyword || kind === ts.SyntaxKind.DeclareKeyword);
    return initializer === undefined && exclamationToken === undefined && !isElsewhere && type?.getText().includes('undefined');
  });
  return fields.map(({ name }) => name.getText()).filter((name) => !made.includes(`this.${name} =`));
}
