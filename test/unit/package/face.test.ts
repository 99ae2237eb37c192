// The public face in the sources: every name that src/index.ts and src/ft/index.ts export, and every member of it, has a docstring that says what it is for.
import { expect, describe as group, test } from 'vitest';
import { ERROR_CODES } from '../../../src/errors.ts';
import { PML_COUNTERS } from '../../../src/pml/counters.ts';
import { ENTRIES, readSurface, undocumented } from '../../../tools/api/surface.mjs';

group('what a user sees', () => {
  const surface = {
    items: Object.values(ENTRIES).flatMap((entry) => readSurface(undefined, entry).items),
    imports: new Map<string, string>(),
  };
  const itemOf = (name: string) => surface.items.find((item) => item.name === name);
  const members = surface.items.flatMap(({ name, members: all = [] }) => all.map((member) => ({ ...member, of: name })));

  test('has a docstring, each of its members too', () => {
    expect(surface.items.length).toBeGreaterThan(50);
    expect(members.length).toBeGreaterThan(250);
    expect(undocumented(surface)).toEqual([]);
  });

  test('is one class where several files hold it', () => {
    const communicator = itemOf('Communicator');
    expect(communicator?.head).toBe('class Communicator');
    const names = new Set(communicator?.members?.map(({ name }) => name));
    for (const name of ['rank', 'send', 'recvObject', 'allreduce', 'allreduceInit', 'bcastObject', 'split']) expect(names).toContain(name);
  });

  test('says what each parameter of a call means', () => {
    const silent = members.flatMap(({ of, name, params = [], doc, full = doc }) =>
      doc.isInternal ? [] : params.filter((one) => full.params[one.name] === undefined).map((one) => `${of}.${name}: ${one.name}`),
    );
    expect(silent).toEqual([]);
    const stray = members.flatMap(({ of, name, params = [], doc, full = doc }) =>
      Object.keys(full.params)
        .filter((one) => !params.some((param) => param.name === one))
        .map((one) => `${of}.${name}: ${one}`),
    );
    expect(stray).toEqual([]);
  });

  test('names errors by codes that exist, and says how every call of a communicator fails', () => {
    const throws = members.flatMap(({ of, name, doc, full = doc }) => full.throws.map((text) => ({ of, name, text })));
    const unknown = throws
      .flatMap(({ text }) => [...text.matchAll(/ERR_\w+/g)].map(([code]) => code))
      .filter((code) => !(code in ERROR_CODES));
    expect(unknown).toEqual([]);
    const harmless = new Set(['constructor']);
    const silent = members.filter(
      ({ of, name, kind, doc, full = doc }) =>
        of === 'Communicator' && kind === 'method' && !harmless.has(name) && full.throws.length === 0,
    );
    expect(silent.map(({ name }) => name)).toEqual([]);
  });

  test('ends its sentences', () => {
    const texts = [
      ...surface.items.map(({ name, doc }) => ({ name, doc })),
      ...members.map(({ of, name, doc }) => ({ name: `${of}.${name}`, doc })),
    ];
    expect(texts.filter(({ doc }) => doc.text !== '' && !/[.:`)]$/.test(doc.text)).map(({ name }) => name)).toEqual([]);
  });

  test('has the counters of messages with their sentences', () => {
    const shown = itemOf('PmlCounters')?.members?.map(({ name, doc }) => [name, doc.text]);
    expect(shown).toEqual(Object.entries(PML_COUNTERS));
  });
});
