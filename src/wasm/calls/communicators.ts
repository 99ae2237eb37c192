// Communicators of one group and of two: how they are made, what they are asked, their attributes and their end. And groups.
import type { Communicator } from '../../mpi/communicator.ts';
import { TAG_UB, UNDEFINED } from '../../mpi/constants.ts';
import type { Group } from '../../mpi/group.ts';
import * as abi from '../abi.ts';
import type { Attributes } from '../attributes.ts';
import { Comm, type Remote } from '../comm.ts';
import { fail } from '../errors.ts';
import type { Calls, Machine } from '../machine.ts';
import { Req } from '../req.ts';

const COMPARISONS = { IDENT: abi.IDENT, CONGRUENT: abi.CONGRUENT, SIMILAR: abi.SIMILAR, UNEQUAL: abi.UNEQUAL } as const;

export function communicators(m: Machine, attributes: Attributes): Calls {
  const { memory } = m;

  /** A new communicator, with the error handler of the one that it was made of. Returns its handle. */
  const made = (base: Communicator | null, parent: Comm, remote?: Remote): number => {
    if (base === null) return abi.COMM_NULL;
    return m.addComm(new Comm(base, parent.errhandler, remote));
  };

  const duplicate = (c: Comm, base: Communicator): Comm => {
    const copy = new Comm(base, c.errhandler, c.remote);
    copy.topology = c.topology;
    copy.info = c.info;
    m.addComm(copy);
    attributes.copyAll(c, copy);
    return copy;
  };
  const dup = (comm: number, at: number): number => {
    const c = m.comm(comm);
    memory.setInt(at, abi.COMM_NULL);
    memory.setInt(at, duplicate(c, c.base.dupSync()).handle);
    return 0;
  };
  const idup = (comm: number, at: number, request: number): number => {
    const c = m.comm(comm);
    // The handle is there at once, and what it stands for when the request has ended. Attributes are copied now.
    const copied = { handle: abi.COMM_NULL, attributes: new Map<number, number>() };
    attributes.copyAll(c, copied);
    const handle = m.comms.add(undefined as unknown as Comm);
    memory.setInt(at, handle);
    const inner = c.base.idup();
    const after = (): void => {
      const copy = new Comm(inner.result as Communicator, c.errhandler, c.remote);
      copy.topology = c.topology;
      copy.info = c.info;
      copy.handle = handle;
      for (const [key, value] of copied.attributes) copy.attributes.set(key, value);
      m.comms.set(handle, copy);
    };
    const req = new Req({ comm: c, kind: 'other', inner, after });
    req.handle = m.requests.add(req);
    memory.setInt(request, req.handle);
    return 0;
  };

  // ---------------------------------------------------------------- of two groups

  /** The part of both groups that has been chosen, as a new intercommunicator. `choice` [colour, key] for each rank here. */
  const splitBoth = (c: Comm, color: number, key: number): number => {
    const remote = c.remote as Remote;
    const isFirst = remote.localOffset < remote.offset;
    const { base } = c;
    const own = Int32Array.of(color, isFirst ? 0 : 1);
    const all = new Int32Array(2 * base.size);
    base.allgatherSync(own, all);
    const has = (side: number): boolean => {
      for (let i = 0; i < base.size; i++) if (all[2 * i] === color && all[2 * i + 1] === side) return true;
      return false;
    };
    const isWhole = color !== abi.UNDEFINED && has(0) && has(1);
    // One order for each group, and the first group in front.
    const local = remote.local.splitSync(isWhole ? color : UNDEFINED, key);
    const place = local === null ? 0 : local.rank + (isFirst ? 0 : base.size);
    const both = base.splitSync(isWhole ? color : UNDEFINED, place);
    if (both === null || local === null) return abi.COMM_NULL;
    const others = both.size - local.size;
    const [offset, localOffset] = isFirst ? [local.size, 0] : [0, others];
    const group = both.group.include(Array.from({ length: others }, (_, i) => offset + i));
    return made(both, c, { group, offset, localOffset, local });
  };

  const create = (comm: number, group: number, at: number): number => {
    const c = m.comm(comm);
    const g = m.group(group);
    if (c.remote !== undefined) {
      const rank = g.rank;
      memory.setInt(at, splitBoth(c, rank === UNDEFINED ? abi.UNDEFINED : 0, rank === UNDEFINED ? 0 : rank));
      return 0;
    }
    if (g.worldRanks.some((world) => c.group.rankOf(world) === undefined))
      fail('GROUP', 'the group has a process that is not in the communicator');
    memory.setInt(at, made(c.base.createSync(g), c));
    return 0;
  };

  /** The leaders tell each other who is in their groups; everybody hears of it from its leader. */
  const exchangeGroups = (c: Comm, leader: number, peer: () => Comm, remoteLeader: number, tag: number): number[] => {
    const head = new Int32Array(2);
    let numbers = new Int32Array(0);
    if (c.rank === leader) {
      const p = peer();
      const own = Int32Array.from([c.group.worldRanks[leader], ...c.group.worldRanks]);
      const to = m.dest(p, remoteLeader);
      const request = p.base.isend(own, to, tag);
      const found = p.base.mprobeSync(to, tag);
      numbers = new Int32Array(found.status.bytes / 4);
      found.recvSync(numbers);
      request.waitSync();
      head.set([numbers.length, 0]);
    }
    c.base.bcastSync(head, leader);
    if (c.rank !== leader) numbers = new Int32Array(head[0]);
    c.base.bcastSync(numbers, leader);
    return Array.from(numbers);
  };

  const intercommCreate = (comm: number, leader: number, peer: number, remoteLeader: number, tag: number, at: number): number => {
    const c = m.intra(comm);
    if (leader < 0 || leader >= c.size) fail('RANK', `the local leader is ${leader}; expected 0 to ${c.size - 1}`);
    const [otherLeader, ...others] = exchangeGroups(c, leader, () => m.comm(peer), remoteLeader, m.sendTag(tag));
    m.blame(c);
    const ownLeader = c.group.worldRanks[leader];
    if (others.some((world) => c.group.rankOf(world) !== undefined)) fail('COMM', 'the two groups have a process in common');
    const isFirst = ownLeader < otherLeader;
    const world = m.world.base;
    const group = world.group.include(others.map((number) => world.group.rankOf(number) ?? -1));
    const union = isFirst ? c.group.union(group) : group.union(c.group);
    const both = world.createGroupSync(union, tag);
    const local = c.base.dupSync();
    const [offset, localOffset] = isFirst ? [c.size, 0] : [0, others.length];
    memory.setInt(at, made(both, c, { group, offset, localOffset, local }));
    return 0;
  };

  const merge = (comm: number, high: number, at: number): number => {
    const c = m.comm(comm);
    const { remote } = c;
    if (remote === undefined) return fail('COMM', 'the communicator has one group only');
    const { base } = c;
    const all = new Int32Array(base.size);
    base.allgatherSync(Int32Array.of(high !== 0 ? 1 : 0), all);
    const [own, other] = [all[remote.localOffset], all[remote.offset]];
    for (let i = 0; i < c.size; i++)
      if (all[remote.localOffset + i] !== own) fail('ARG', 'the processes of a group have said different things of high');
    // Where both say the same, the order is that of the communicator of both.
    const isHigh = own === other ? remote.localOffset > remote.offset : own === 1;
    memory.setInt(at, made(base.splitSync(0, (isHigh ? base.size : 0) + c.rank), c));
    return 0;
  };

  const free = (at: number, wait: boolean): number => {
    const c = m.comm(memory.int(at));
    if (c === m.world || c === m.self) fail('COMM', 'MPI_COMM_WORLD and MPI_COMM_SELF cannot be freed');
    attributes.deleteAll(c);
    c.isFreed = true;
    m.comms.remove(c.handle);
    memory.setInt(at, abi.COMM_NULL);
    c.base.freeSync({ wait });
    return 0;
  };

  const compare = (one: number, other: number, at: number): number => {
    const a = m.comm(one);
    const b = m.comm(other);
    let result: number = abi.UNEQUAL;
    if (a === b) result = abi.IDENT;
    else if ((a.remote === undefined) === (b.remote === undefined)) {
      const groups = [a.group.compare(b.group), ...(a.remote && b.remote ? [a.remote.group.compare(b.remote.group)] : [])];
      result = groups.includes('UNEQUAL') ? abi.UNEQUAL : groups.includes('SIMILAR') ? abi.SIMILAR : abi.CONGRUENT;
    }
    memory.setInt(at, result);
    return 0;
  };

  // ---------------------------------------------------------------- attributes that MPI has set

  const fixed = new Map<number, number>();
  /** Address of the value of an attribute that exists from the start. */
  const fixedAt = (key: number): number | undefined => {
    const known = fixed.get(key);
    if (known !== undefined) return known;
    const values: Record<number, number> = {
      [abi.ATTRIBUTE.TAG_UB]: TAG_UB,
      [abi.ATTRIBUTE.IO]: abi.ANY_SOURCE,
      [abi.ATTRIBUTE.HOST]: abi.PROC_NULL,
      [abi.ATTRIBUTE.WTIME_IS_GLOBAL]: 0,
      [abi.ATTRIBUTE.LASTUSEDCODE]: m.lastUsedCode,
      [abi.ATTRIBUTE.UNIVERSE_SIZE]: m.world.size,
      [abi.ATTRIBUTE.APPNUM]: 0,
    };
    if (values[key] === undefined) return undefined;
    const at = m.malloc(4) >>> 0;
    memory.check(at, 4, 'the memory');
    memory.setInt(at, values[key]);
    if (key !== abi.ATTRIBUTE.LASTUSEDCODE) fixed.set(key, at);
    return at;
  };
  const isFixed = (key: number): boolean => key >= abi.ATTRIBUTE.TAG_UB && key <= abi.ATTRIBUTE.UNIVERSE_SIZE;
  const getAttr = (comm: number, key: number, at: number, flag: number): number => {
    const c = m.comm(comm);
    const fixedValue = isFixed(key) ? fixedAt(key) : undefined;
    if (fixedValue === undefined) attributes.get(c, key, at, flag);
    else {
      memory.setInt(flag, 1);
      memory.setInt(at, fixedValue);
    }
    return 0;
  };
  const setAttr = (comm: number, key: number, value: number): number => {
    if (isFixed(key)) fail('KEYVAL', 'the attribute is one of MPI itself');
    attributes.set(m.comm(comm), key, value);
    return 0;
  };
  const deleteAttr = (comm: number, key: number): number => {
    if (isFixed(key)) fail('KEYVAL', 'the attribute is one of MPI itself');
    attributes.delete(m.comm(comm), key);
    return 0;
  };
  const createKeyval = (copy: number, remove: number, at: number, extra: number): number => {
    attributes.create(copy, remove, at, extra);
    return 0;
  };
  const freeKeyval = (at: number): number => {
    attributes.free(at);
    return 0;
  };

  return {
    Comm_rank: (comm, at) => {
      memory.setInt(at, m.comm(comm).rank);
      return 0;
    },
    Comm_size: (comm, at) => {
      memory.setInt(at, m.comm(comm).size);
      return 0;
    },
    Comm_group: (comm, at) => {
      memory.setInt(at, m.groups.add(m.comm(comm).group));
      return 0;
    },
    Comm_compare: compare,
    Comm_dup: dup,
    Comm_dup_with_info: (comm, info, at) => {
      const code = dup(comm, at);
      const copy = m.comms.find(memory.int(at));
      if (copy !== undefined) copy.info = new Map(m.infos.find(info));
      return code;
    },
    Comm_idup: idup,
    Comm_idup_with_info: (comm, _info, at, request) => idup(comm, at, request),
    Comm_create: create,
    Comm_create_group: (comm, group, tag, at) => {
      const c = m.intra(comm);
      const g = m.group(group);
      memory.setInt(at, g.rank === UNDEFINED ? abi.COMM_NULL : made(c.base.createGroupSync(g, m.sendTag(tag)), c));
      return 0;
    },
    Comm_split: (comm, color, key, at) => {
      const c = m.comm(comm);
      if (color < 0 && color !== abi.UNDEFINED) fail('ARG', `the colour is ${color}; expected 0 or more, or MPI_UNDEFINED`);
      memory.setInt(at, c.remote !== undefined ? splitBoth(c, color, key) : made(c.base.splitSync(color < 0 ? UNDEFINED : color, key), c));
      return 0;
    },
    Comm_split_type: (comm, type, key, info, at) => {
      const c = m.intra(comm);
      const resource = m.infos.find(info)?.get('mpi_hw_resource_type');
      const isShared = type === abi.COMM_TYPE_SHARED || (type === abi.COMM_TYPE_HW_GUIDED && resource === 'mpi_shared_memory');
      const known: readonly number[] = [abi.COMM_TYPE_HW_GUIDED, abi.COMM_TYPE_HW_UNGUIDED, abi.COMM_TYPE_RESOURCE_GUIDED, abi.UNDEFINED];
      if (!isShared && !known.includes(type)) fail('ARG', `${type} is no way to split`);
      memory.setInt(at, made(isShared ? c.base.splitTypeSync('shared', key) : c.base.splitSync(UNDEFINED), c));
      return 0;
    },
    Comm_free: (at) => free(at, false),
    Comm_disconnect: (at) => free(at, true),
    Comm_set_name: (comm, name) => {
      m.comm(comm).name = memory.text(name).slice(0, abi.MAX_OBJECT_NAME - 1);
      return 0;
    },
    Comm_get_name: (comm, at, length) => {
      memory.setInt(length, memory.setText(at, m.comm(comm).name, abi.MAX_OBJECT_NAME));
      return 0;
    },
    Comm_set_info: (comm, info) => {
      m.comm(comm).info = new Map(m.infos.find(info) ?? fail('INFO', 'there is no such info object'));
      return 0;
    },
    Comm_get_info: (comm, at) => {
      memory.setInt(at, m.infos.add(new Map(m.comm(comm).info)));
      return 0;
    },
    Comm_test_inter: (comm, flag) => {
      memory.setInt(flag, m.comm(comm).remote === undefined ? 0 : 1);
      return 0;
    },
    Comm_remote_size: (comm, at) => {
      const { remote } = m.comm(comm);
      memory.setInt(at, remote?.group.size ?? fail('COMM', 'the communicator has one group only'));
      return 0;
    },
    Comm_remote_group: (comm, at) => {
      const { remote } = m.comm(comm);
      memory.setInt(at, m.groups.add(remote?.group ?? fail('COMM', 'the communicator has one group only')));
      return 0;
    },
    Intercomm_create: intercommCreate,
    Intercomm_merge: merge,
    Comm_get_parent: (at) => {
      memory.setInt(at, abi.COMM_NULL);
      return 0;
    },
    Comm_create_keyval: createKeyval,
    Keyval_create: createKeyval,
    Comm_free_keyval: freeKeyval,
    Keyval_free: freeKeyval,
    Comm_set_attr: setAttr,
    Attr_put: setAttr,
    Comm_get_attr: getAttr,
    Attr_get: getAttr,
    Comm_delete_attr: deleteAttr,
    Attr_delete: deleteAttr,
    ...groups(m),
  };
}

function groups(m: Machine): Calls {
  const { memory } = m;
  const give = (at: number, group: Group): number => {
    memory.setInt(at, group.size === 0 ? abi.GROUP_EMPTY : m.groups.add(group));
    return 0;
  };
  /** Ranks of triples of first, last and stride. */
  const ranges = (group: Group, count: number, at: number): number[] => {
    if (count < 0) fail('ARG', `there are ${count} ranges`);
    const list: number[] = [];
    for (let i = 0; i < count; i++) {
      const [first, last, stride] = memory.ints(at + 12 * i, 3);
      if (stride === 0) fail('ARG', 'the stride of a range is 0');
      if ((stride > 0 && first > last) || (stride < 0 && first < last)) fail('ARG', `the range ${first}, ${last}, ${stride} is empty`);
      for (let rank = first; stride > 0 ? rank <= last : rank >= last; rank += stride) list.push(rank);
    }
    return checkRanks(group, list);
  };
  const checkRanks = (group: Group, ranks: number[]): number[] => {
    for (const rank of ranks)
      if (rank < 0 || rank >= group.size) fail('RANK', `the rank is ${rank}; expected 0 to ${group.size - 1} of the group`);
    return ranks;
  };
  const listOf = (count: number, at: number): number[] => (count < 0 ? fail('ARG', `there are ${count} ranks`) : memory.ints(at, count));

  return {
    Group_size: (group, at) => {
      memory.setInt(at, m.group(group).size);
      return 0;
    },
    Group_rank: (group, at) => {
      const { rank } = m.group(group);
      memory.setInt(at, rank === UNDEFINED ? abi.UNDEFINED : rank);
      return 0;
    },
    Group_translate_ranks: (group, count, at, other, into) => {
      const [from, to] = [m.group(group), m.group(other)];
      const ranks = listOf(count, at).map((rank) => {
        if (rank === abi.PROC_NULL) return rank;
        checkRanks(from, [rank]);
        return to.rankOf(from.worldRanks[rank]) ?? abi.UNDEFINED;
      });
      memory.setInts(into, ranks);
      return 0;
    },
    Group_compare: (group, other, at) => {
      memory.setInt(at, COMPARISONS[m.group(group).compare(m.group(other))]);
      return 0;
    },
    Group_union: (a, b, at) => give(at, m.group(a).union(m.group(b))),
    Group_intersection: (a, b, at) => give(at, m.group(a).intersection(m.group(b))),
    Group_difference: (a, b, at) => give(at, m.group(a).difference(m.group(b))),
    Group_incl: (group, count, at, into) => give(into, m.group(group).include(listOf(count, at))),
    Group_excl: (group, count, at, into) => give(into, m.group(group).exclude(listOf(count, at))),
    Group_range_incl: (group, count, at, into) => give(into, m.group(group).include(ranges(m.group(group), count, at))),
    Group_range_excl: (group, count, at, into) => give(into, m.group(group).exclude(ranges(m.group(group), count, at))),
    Group_free: (at) => {
      const handle = memory.int(at);
      m.group(handle);
      m.groups.remove(handle);
      memory.setInt(at, abi.GROUP_NULL);
      return 0;
    },
  };
}
