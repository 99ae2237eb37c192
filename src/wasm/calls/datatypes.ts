// Datatypes: made, asked, packed and unpacked; counts of statuses.
import * as abi from '../abi.ts';
import type { Attributes } from '../attributes.ts';
import { fail } from '../errors.ts';
import type { Calls, Machine } from '../machine.ts';
import { SIZED } from '../types/basics.ts';
import * as construct from '../types/construct.ts';
import type { Datatype } from '../types/datatype.ts';
import { elementsIn, externalSize, pack, packExternal, unpack, unpackExternal } from '../types/pack.ts';

export function datatypes(m: Machine, attributes: Attributes): Calls {
  const { memory } = m;
  const give = (at: number, type: Datatype): number => {
    memory.setInt(at, m.addType(type));
    return 0;
  };
  const length = (count: number): number => (count >= 0 ? count : fail('COUNT', `the count is ${count}; expected 0 or more`));
  const typesAt = (at: number, count: number): Datatype[] => memory.ints(at, count).map((handle) => m.type(handle));

  const hvector = (count: number, blockLength: number, stride: number, type: number, at: number): number =>
    give(at, construct.hvector(count, blockLength, stride, m.type(type), m.wide));
  const hindexed = (count: number, lengths: number, places: number, type: number, at: number): number =>
    give(at, construct.hindexed(m.counts(lengths, length(count)), m.counts(places, count), m.type(type), m.wide));
  const struct = (count: number, lengths: number, places: number, types: number, at: number): number =>
    give(at, construct.struct(m.counts(lengths, length(count)), m.counts(places, count), typesAt(types, count), m.wide));

  const bytesIn = (status: number): number => memory.long(status + 12);
  /** Counts beyond what a number holds are whole numbers of basic elements. */
  const bigElements = (status: number, type: Datatype): bigint => {
    const bytes = memory.big(status + 12);
    if (bytes <= Number.MAX_SAFE_INTEGER) return BigInt(elementsIn(type, Number(bytes)));
    return type.size === 0 ? 0n : (bytes / BigInt(type.size)) * BigInt(type.elements);
  };
  const getCount = (status: number, type: number, at: number): number => {
    const { size } = m.type(type);
    const bytes = bytesIn(status);
    const count = size === 0 ? (bytes === 0 ? 0 : abi.UNDEFINED) : bytes % size === 0 ? bytes / size : abi.UNDEFINED;
    m.setCount(at, count);
    return 0;
  };
  const getElements = (status: number, type: number, at: number): number => {
    const elements = elementsIn(m.type(type), bytesIn(status));
    m.setCount(at, elements === -1 ? abi.UNDEFINED : elements);
    return 0;
  };
  const setElements = (status: number, type: number, count: number): number => {
    memory.setBig(status + 12, BigInt(m.type(type).size) * BigInt(count));
    return 0;
  };

  /** Where packed data begin and end: a view of all, and the place of the next byte. */
  const packed = (at: number, bytes: number): Uint8Array => {
    if (bytes < 0) fail('ARG', `the packed buffer has ${bytes} bytes`);
    const from = at >>> 0;
    if (bytes > 0 && from === 0) fail('BUFFER', 'the packed buffer is NULL');
    return bytes === 0 ? new Uint8Array(0) : memory.view(from, bytes);
  };
  const position = (at: number): number => {
    const place = m.counts(at, 1)[0];
    return place >= 0 ? place : fail('ARG', `the position is ${place}`);
  };

  const checkDatarep = (at: number): void => {
    const name = memory.text(at);
    if (name !== 'external32') fail('ARG', `the data representation is "${name}"; expected external32`);
  };

  const envelope = (handle: number) => {
    const type = m.type(handle);
    return { type, contents: type.contents };
  };
  /** A type of the contents: predefined ones are what they are, others are given as new handles. */
  const handleOf = (type: Datatype): number =>
    type.isPredefined ? type.handle : m.addType(Object.create(type, { handle: { value: 0, writable: true } }) as Datatype);

  const contents = (handle: number, limits: readonly number[], ints: number, addresses: number, counts: number, types: number): number => {
    const { type, contents: made } = envelope(handle);
    if (made.combiner === abi.COMBINER.NAMED) fail('TYPE', 'a predefined datatype was not made of others');
    const [maxInts, maxAddresses, maxCounts, maxTypes] = limits;
    if (
      maxInts < made.ints.length ||
      maxAddresses < made.addresses.length ||
      maxCounts < made.counts.length ||
      maxTypes < made.types.length
    )
      fail('ARG', 'the arrays are too short for the contents of the datatype');
    if (made.isLarge && counts === 0) fail('TYPE', 'the datatype was made with large counts: MPI_Type_get_contents_c');
    memory.setInts(ints, made.ints);
    memory.setInts(addresses, made.addresses);
    made.counts.forEach((count, i) => void memory.setLong(counts + 8 * i, count));
    memory.setInts(types, made.types.map(handleOf));
    void type;
    return 0;
  };

  const extent = (handle: number, lb: number, at: number): number => {
    const type = m.type(handle);
    m.setPlace(lb, type.lb);
    m.setPlace(at, type.extent);
    return 0;
  };
  const trueExtent = (handle: number, lb: number, at: number): number => {
    const type = m.type(handle);
    m.setPlace(lb, type.trueLb);
    m.setPlace(at, type.trueUb - type.trueLb);
    return 0;
  };
  const size = (handle: number, at: number): number => {
    m.setCount(at, m.type(handle).size);
    return 0;
  };
  const f90 = (handle: number | undefined, at: number): number => {
    if (handle === undefined) return fail('ARG', 'there is no such type of Fortran');
    memory.setInt(at, handle);
    return 0;
  };

  return {
    Type_contiguous: (count, type, at) => give(at, construct.contiguous(count, m.type(type), m.wide)),
    Type_vector: (count, blockLength, stride, type, at) => give(at, construct.vector(count, blockLength, stride, m.type(type), m.wide)),
    Type_create_hvector: hvector,
    Type_hvector: hvector,
    Type_indexed: (count, lengths, places, type, at) =>
      give(at, construct.indexed(m.counts(lengths, length(count)), m.counts(places, count), m.type(type), m.wide)),
    Type_create_hindexed: hindexed,
    Type_hindexed: hindexed,
    Type_create_indexed_block: (count, blockLength, places, type, at) =>
      give(at, construct.indexedBlock(blockLength, m.counts(places, length(count)), m.type(type), m.wide)),
    Type_create_hindexed_block: (count, blockLength, places, type, at) =>
      give(at, construct.hindexedBlock(blockLength, m.counts(places, length(count)), m.type(type), m.wide)),
    Type_create_struct: struct,
    Type_struct: struct,
    Type_create_subarray: (dims, sizes, subsizes, starts, order, type, at) => {
      if (dims < 1) fail('ARG', `${dims} dimensions`);
      return give(
        at,
        construct.subarray(m.counts(sizes, dims), m.counts(subsizes, dims), m.counts(starts, dims), order, m.type(type), m.wide),
      );
    },
    Type_create_darray: (count, rank, dims, sizes, kinds, args, places, order, type, at) => {
      if (dims < 1) fail('ARG', `${dims} dimensions`);
      const how = {
        size: count,
        rank,
        sizes: m.counts(sizes, dims),
        kinds: memory.ints(kinds, dims),
        args: memory.ints(args, dims),
        places: memory.ints(places, dims),
        order,
      };
      return give(at, construct.darray(how, m.type(type), m.wide));
    },
    Type_create_resized: (type, lb, extentBytes, at) => give(at, construct.resized(m.type(type), lb, extentBytes, m.wide)),
    Type_dup: (handle, at) => {
      const type = m.type(handle);
      const copy = construct.dup(type);
      m.addType(copy);
      attributes.copyAll(type, copy);
      memory.setInt(at, copy.handle);
      return 0;
    },
    Type_commit: (at) => {
      m.type(memory.int(at)).isCommitted = true;
      return 0;
    },
    Type_free: (at) => {
      const handle = memory.int(at);
      const type = m.type(handle);
      if (type.isPredefined) fail('TYPE', `${type.name} is predefined, and cannot be freed`);
      attributes.deleteAll(type);
      // What is under way with it goes on: only the handle is gone.
      m.types.remove(handle);
      memory.setInt(at, abi.DATATYPE_NULL);
      return 0;
    },
    Type_size: size,
    Type_size_x: (handle, at) => {
      memory.setLong(at, m.type(handle).size);
      return 0;
    },
    Type_get_extent: extent,
    Type_get_true_extent: trueExtent,
    Type_get_extent_x: (handle, lb, at) => {
      const type = m.type(handle);
      memory.setLong(lb, type.lb);
      memory.setLong(at, type.extent);
      return 0;
    },
    Type_get_true_extent_x: (handle, lb, at) => {
      const type = m.type(handle);
      memory.setLong(lb, type.trueLb);
      memory.setLong(at, type.trueUb - type.trueLb);
      return 0;
    },
    Type_extent: (handle, at) => {
      memory.setInt(at, m.type(handle).extent);
      return 0;
    },
    Type_lb: (handle, at) => {
      memory.setInt(at, m.type(handle).lb);
      return 0;
    },
    Type_ub: (handle, at) => {
      memory.setInt(at, m.type(handle).ub);
      return 0;
    },
    Type_get_envelope: (handle, ints, addresses, types, combiner) => {
      const { contents: made } = envelope(handle);
      if (made.isLarge) fail('TYPE', 'the datatype was made with large counts: MPI_Type_get_envelope_c');
      memory.setInt(ints, made.ints.length);
      memory.setInt(addresses, made.addresses.length);
      memory.setInt(types, made.types.length);
      memory.setInt(combiner, made.combiner);
      return 0;
    },
    Type_get_envelope_c: (handle, ints, addresses, counts, types, combiner) => {
      const { contents: made } = envelope(handle);
      memory.setLong(ints, made.ints.length);
      memory.setLong(addresses, made.addresses.length);
      memory.setLong(counts, made.counts.length);
      memory.setLong(types, made.types.length);
      memory.setInt(combiner, made.combiner);
      return 0;
    },
    Type_get_contents: (handle, maxInts, maxAddresses, maxTypes, ints, addresses, types) =>
      contents(handle, [maxInts, maxAddresses, 0x7fff_ffff, maxTypes], ints, addresses, 0, types),
    Type_get_contents_c: (handle, maxInts, maxAddresses, maxCounts, maxTypes, ints, addresses, counts, types) =>
      contents(handle, [maxInts, maxAddresses, maxCounts, maxTypes].map(Number), ints, addresses, counts, types),
    Type_match_size: (typeClass, bytes, at) => {
      const found = SIZED.find(([known, length]) => known === typeClass && length === bytes);
      memory.setInt(at, found?.[2] ?? fail('ARG', `there is no type of class ${typeClass} with ${bytes} bytes`));
      return 0;
    },
    Type_get_value_index: (value, index, at) => {
      const pairs: Record<string, number> = {
        '528,521': 0x228,
        '532,521': 0x229,
        '522,521': 0x22a,
        '521,521': 0x22b,
        '520,521': 0x22c,
        '544,521': 0x22d,
      };
      memory.setInt(at, pairs[`${value},${index}`] ?? abi.DATATYPE_NULL);
      return 0;
    },
    Type_create_f90_real: (digits, range, at) =>
      f90(
        digits <= 6 && range <= 37 ? 0x210 : digits <= 15 && range <= 307 ? 0x214 : digits <= 33 && range <= 4931 ? 0x220 : undefined,
        at,
      ),
    Type_create_f90_complex: (digits, range, at) =>
      f90(
        digits <= 6 && range <= 37 ? 0x212 : digits <= 15 && range <= 307 ? 0x216 : digits <= 33 && range <= 4931 ? 0x224 : undefined,
        at,
      ),
    Type_create_f90_integer: (range, at) =>
      f90(range <= 2 ? 0x240 : range <= 4 ? 0x248 : range <= 9 ? 0x250 : range <= 18 ? 0x258 : undefined, at),
    Type_set_name: (handle, name) => {
      m.type(handle).name = memory.text(name).slice(0, abi.MAX_OBJECT_NAME - 1);
      return 0;
    },
    Type_get_name: (handle, at, length) => {
      memory.setInt(
        length,
        memory.setText(at, handle === abi.DATATYPE_NULL ? 'MPI_DATATYPE_NULL' : m.type(handle).name, abi.MAX_OBJECT_NAME),
      );
      return 0;
    },
    Type_create_keyval: (copy, remove, at, extra) => {
      attributes.create(copy, remove, at, extra);
      return 0;
    },
    Type_free_keyval: (at) => {
      attributes.free(at);
      return 0;
    },
    Type_set_attr: (handle, key, value) => {
      attributes.set(m.type(handle), key, value);
      return 0;
    },
    Type_get_attr: (handle, key, at, flag) => {
      attributes.get(m.type(handle), key, at, flag);
      return 0;
    },
    Type_delete_attr: (handle, key) => {
      attributes.delete(m.type(handle), key);
      return 0;
    },

    Get_count: getCount,
    Get_elements: getElements,
    Get_elements_x: (status, type, at) => {
      const elements = bigElements(status, m.type(type));
      memory.setBig(at, elements === -1n ? BigInt(abi.UNDEFINED) : elements);
      return 0;
    },
    Status_set_elements: setElements,
    Status_set_elements_x: setElements,
    Status_set_cancelled: (status, flag) => {
      memory.setInt(status + 20, flag);
      return 0;
    },
    Status_get_source: (status, at) => {
      memory.setInt(at, memory.int(status));
      return 0;
    },
    Status_get_tag: (status, at) => {
      memory.setInt(at, memory.int(status + 4));
      return 0;
    },
    Status_get_error: (status, at) => {
      memory.setInt(at, memory.int(status + 8));
      return 0;
    },
    Status_set_source: (status, value) => {
      memory.setInt(status, value);
      return 0;
    },
    Status_set_tag: (status, value) => {
      memory.setInt(status + 4, value);
      return 0;
    },
    Status_set_error: (status, value) => {
      memory.setInt(status + 8, value);
      return 0;
    },

    // ---------------------------------------------------------------- packing
    Pack: (from, count, type, into, room, place, comm) => {
      m.comm(comm);
      const datatype = m.committed(type);
      const at = position(place);
      const bytes = length(count) * datatype.size;
      if (at + bytes > room) fail('TRUNCATE', `${bytes} bytes at ${at} do not fit into ${room}`);
      if (bytes > 0) pack(memory, from >>> 0, count, datatype, packed(into, room), at);
      m.setCount(place, at + bytes);
      return 0;
    },
    Unpack: (from, room, place, into, count, type, comm) => {
      m.comm(comm);
      const datatype = m.committed(type);
      const at = position(place);
      const bytes = length(count) * datatype.size;
      if (at + bytes > room) fail('TRUNCATE', `${bytes} bytes at ${at} are not in ${room}`);
      if (bytes > 0) unpack(memory, into >>> 0, count, datatype, packed(from, room).subarray(at, at + bytes));
      m.setCount(place, at + bytes);
      return 0;
    },
    Pack_size: (count, type, comm, at) => {
      m.comm(comm);
      m.setCount(at, length(count) * m.type(type).size);
      return 0;
    },
    Pack_external: (name, from, count, type, into, room, place) => {
      checkDatarep(name);
      const datatype = m.committed(type);
      const at = position(place);
      const bytes = externalSize(length(count), datatype);
      if (at + bytes > room) fail('TRUNCATE', `${bytes} bytes at ${at} do not fit into ${room}`);
      if (bytes > 0) packExternal(memory, from >>> 0, count, datatype, packed(into, room), at);
      m.setPlace(place, at + bytes);
      return 0;
    },
    Unpack_external: (name, from, room, place, into, count, type) => {
      checkDatarep(name);
      const datatype = m.committed(type);
      const at = position(place);
      const bytes = count > 0 ? unpackExternal(memory, into >>> 0, count, datatype, packed(from, room), at) : 0;
      m.setPlace(place, at + bytes);
      return 0;
    },
    Pack_external_size: (name, count, type, at) => {
      checkDatarep(name);
      m.setPlace(at, externalSize(length(count), m.type(type)));
      return 0;
    },
  };
}
