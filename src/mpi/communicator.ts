// A communicator: ranks that talk to each other, apart from all other communicators. Here: how others are made of it, and its end.
import { MultirailError } from '../errors.ts';
import { dissemination } from './coll/barrier-bcast.ts';
import type { Call } from './coll/calls.ts';
import { agreeOnGroup, agreeOnId, agreeOnSplit, type Made } from './coll/creation.ts';
import type { Operation, Scope } from './coll/operation.ts';
import { type CallOptions, checkOptions, checkSendTag, UNDEFINED } from './constants.ts';
import { CREATION, ctxOf, SERVICE_ID, USER, WORLD_ID } from './contexts.ts';
import { CONGRUENT, type Comparison, checkGroup, Group, IDENT } from './group.ts';
import { ObjectCollectives } from './object-collectives.ts';

/** What a creation has made; undefined for ranks that are not in it. */
type Creation = Call<Made | undefined>;

export class Communicator extends ObjectCollectives {
  // ---------------------------------------------------------------- creation (MPI-4.1, section 7.4)

  /** A communicator of the same ranks, whose messages never meet those of this one. Collective. */
  dup(options?: CallOptions): Promise<Communicator> {
    return this.make(() => this.dupCall(), `${this.name}.dup`, options) as Promise<Communicator>;
  }

  dupSync(options?: CallOptions): Communicator {
    return this.makeSync(this.dupCall(), `${this.name}.dup`, options) as Communicator;
  }

  private dupCall(): Creation {
    const { members, allocate } = this;
    return {
      signature: this.signatures.of('dup'),
      *steps(o) {
        const id = yield* agreeOnId(o as unknown as Operation<number>, allocate);
        return { id, worldRanks: members };
      },
    };
  }

  /**
   * A communicator for each colour: of the ranks that give the same one, in the order of their keys, of equal keys in that of their ranks
   * here. `color`: 0 or more, or UNDEFINED, which gives null: this rank gets none. Collective.
   */
  split(color: number, key = 0, options?: CallOptions): Promise<Communicator | null> {
    return this.make(() => this.splitCall(color, key), `${this.name}.split(${color})`, options);
  }

  splitSync(color: number, key = 0, options?: CallOptions): Communicator | null {
    return this.makeSync(this.splitCall(color, key), `${this.name}.split(${color})`, options);
  }

  private splitCall(color: number, key: number): Creation {
    if (color !== UNDEFINED && !(Number.isSafeInteger(color) && color >= 0)) {
      throw new MultirailError('ERR_ARG', `color is ${String(color)}; expected a whole number, 0 or more, or UNDEFINED`);
    }
    if (!Number.isSafeInteger(key)) throw new MultirailError('ERR_ARG', `key is ${String(key)}; expected a whole number`);
    return { signature: this.signatures.of('split'), steps: (o) => agreeOnSplit(o, color, key, this.allocate) };
  }

  /** As split(), by what the ranks share: 'shared' = those on the same host, which can share memory. Collective. */
  splitType(type: 'shared', key = 0, options?: CallOptions): Promise<Communicator | null> {
    return this.make(() => this.splitCall(this.colorOf(type), key), `${this.name}.splitType(${type})`, options);
  }

  splitTypeSync(type: 'shared', key = 0, options?: CallOptions): Communicator | null {
    return this.makeSync(this.splitCall(this.colorOf(type), key), `${this.name}.splitType(${type})`, options);
  }

  /** The lowest world rank on the host of this rank. Hosts are told apart as for shared memory: by the id that their ranks publish. */
  private colorOf(type: unknown): number {
    if ((type as number) === UNDEFINED) return UNDEFINED;
    if (type !== 'shared') throw new MultirailError('ERR_ARG', `type is ${JSON.stringify(type)}; expected 'shared' or UNDEFINED`);
    const { hostIds, rank } = this.host;
    return hostIds.indexOf(hostIds[rank]);
  }

  /**
   * A communicator of the ranks of the group, in its order; null for ranks that are not in it. Every rank of this communicator calls it;
   * groups of different ranks are the same, or have no member in common (ERR_GROUP).
   */
  create(group: Group, options?: CallOptions): Promise<Communicator | null> {
    return this.make(() => this.createCall(group), `${this.name}.create`, options);
  }

  createSync(group: Group, options?: CallOptions): Communicator | null {
    return this.makeSync(this.createCall(group), `${this.name}.create`, options);
  }

  private createCall(group: Group): Creation {
    this.checkSubgroup(group);
    return { signature: this.signatures.of('create'), steps: (o) => agreeOnGroup(o, group, this.allocate) };
  }

  private checkSubgroup(group: Group): void {
    const stranger = checkGroup(group).worldRanks.find((world) => this.group.rankOf(world) === undefined);
    if (stranger === undefined) return;
    throw new MultirailError('ERR_GROUP', `group holds rank ${stranger} of the world, which is not in the communicator ${this.name}`);
  }

  /**
   * As create(), but only the ranks of the group call it. `tag` tells creations apart that run at the same time with members in common;
   * it meets no other tag.
   */
  createGroup(group: Group, tag = 0, options?: CallOptions): Promise<Communicator> {
    return this.make(() => this.createGroupCall(group, tag), `${this.name}.createGroup`, options, group, tag) as Promise<Communicator>;
  }

  createGroupSync(group: Group, tag = 0, options?: CallOptions): Communicator {
    return this.makeSync(this.createGroupCall(group, tag), `${this.name}.createGroup`, options, group, tag) as Communicator;
  }

  private createGroupCall(group: Group, tag: number): Creation {
    this.checkSubgroup(group);
    checkSendTag(tag);
    if (group.rank === UNDEFINED) throw new MultirailError('ERR_GROUP', 'group does not hold the rank that calls createGroup()');
    const { allocate } = this;
    return {
      signature: this.signatures.of('createGroup'),
      *steps(o) {
        const id = yield* agreeOnId(o as unknown as Operation<number>, allocate);
        return { id, worldRanks: group.worldRanks };
      },
    };
  }

  private readonly allocate = (): number => this.host.contexts.allocate();

  /** Starts a creation. `scope`: other ranks than those of this communicator. */
  private beginCreation(call: Creation, name: string, whenMade: (made: Communicator | null) => void, group?: Group, tag?: number) {
    const { contexts } = this.host;
    const scope: Scope | undefined = group === undefined ? undefined : this.scopeOf(ctxOf(this.contextId, CREATION), group);
    // From here on messages may come for it.
    contexts.beginCreation();
    const operation = this.begin(call, scope, tag);
    const end = (): void => {
      const made = operation.result;
      if (operation.error === undefined && made !== undefined) {
        contexts.open(made.id);
        whenMade(new Communicator(this.host, name, made.id, new Group(made.worldRanks, this.host.rank)));
      } else if (operation.error === undefined) whenMade(null);
      contexts.endCreation(operation.error !== undefined);
    };
    if (operation.done) end();
    return { operation, end };
  }

  private make(
    prepare: () => Creation,
    name: string,
    options: CallOptions | undefined,
    group?: Group,
    tag?: number,
  ): Promise<Communicator | null> {
    return new Promise((resolve, reject) => {
      this.mustBeUsable();
      checkOptions(options);
      const { operation, end } = this.beginCreation(prepare(), name, resolve, group, tag);
      if (options !== undefined) this.limit(operation, options);
      const settle = (): void => {
        if (operation.error !== undefined) reject(operation.error);
      };
      if (operation.done) return settle();
      operation.onDone = () => {
        end();
        settle();
      };
    });
  }

  private makeSync(call: Creation, name: string, options: CallOptions | undefined, group?: Group, tag?: number): Communicator | null {
    this.mustBeUsable();
    checkOptions(options);
    this.mustReachByPolling();
    let made: Communicator | null = null;
    const { operation, end } = this.beginCreation(
      call,
      name,
      (communicator) => {
        made = communicator;
      },
      group,
      tag,
    );
    if (!operation.done) operation.onDone = end;
    this.endedSync(operation, options?.timeoutMs);
    return made;
  }

  /** IDENT: the same communicator; CONGRUENT: the same ranks in the same order; SIMILAR: in another order; UNEQUAL. */
  compare(other: Communicator): Comparison {
    if (!(other instanceof Communicator)) throw new MultirailError('ERR_COMM', `other is no communicator, but ${typeof other}`);
    if (other === this) return IDENT;
    const groups = this.group.compare(other.group);
    return groups === IDENT ? CONGRUENT : groups;
  }

  // ---------------------------------------------------------------- the end (MPI-4.1, section 7.4.3)

  /**
   * Frees the communicator. Collective: every rank calls it, and it resolves when everything that was begun on it, on any rank, has ended;
   * messages that nobody has received by then are dropped. Every later call on it throws ERR_COMM; a Message that a probe has matched
   * can be received until it resolves. The world cannot be freed. When a member is gone, it resolves without waiting for anybody, and
   * receives that are still posted end with ERR_COMM.
   */
  free(): Promise<void> {
    return new Promise((resolve, reject) => {
      this.mustBeFreeable();
      this.leave(resolve, reject);
    });
  }

  freeSync(): void {
    this.mustBeFreeable();
    this.mustReachByPolling();
    const left = { done: false };
    let failure: unknown;
    const end = (error?: unknown): void => {
      left.done = true;
      failure = error;
    };
    this.leave(() => end(), end);
    if (!left.done) this.desk.wait(left);
    if (failure !== undefined) throw failure;
  }

  private mustBeFreeable(): void {
    this.mustBeUsable();
    if (this.contextId === WORLD_ID) throw new MultirailError('ERR_COMM', 'the world cannot be freed: finalize() ends it');
  }

  /**
   * First all that this rank has under way, then a barrier on the service context, which outlives the communicator: after it nobody sends
   * anything on it any more, and all that was sent has arrived.
   */
  private leave(resolve: () => void, reject: (error: unknown) => void): void {
    const { host, contextId } = this;
    const { engine } = host;
    const freed = new MultirailError('ERR_COMM', `the communicator ${this.name} was freed`, { rank: host.rank });
    this.freed = freed;
    const abandon = (): void => {
      host.endCommunicator(contextId, false, freed);
      resolve();
    };
    const close = (): void => {
      const scope = this.scopeOf(ctxOf(SERVICE_ID, USER), this.group);
      const operation = this.begin({ signature: this.signatures.of('free'), steps: dissemination }, scope, contextId);
      const end = (): void => {
        if (operation.error !== undefined) return abandon();
        host.endCommunicator(contextId, true, freed);
        resolve();
      };
      if (operation.done) end();
      else operation.onDone = end;
    };
    const lacksMember = (): boolean => this.members.some((world) => engine.pml.peer(world).ended !== undefined);
    try {
      host.whenDrained(() => {
        if (lacksMember()) abandon();
        else if (host.isQuiet(contextId)) close();
        else return false;
        return true;
      });
      engine.schedule();
    } catch (error) {
      reject(error);
    }
  }
}
