// One agreement at one member: events in, messages and at last a decision out. docs/internals/ULFM.md has the rules and why they hold.
//
// STATEs go up to the leader, the lowest rank that a member does not know to be gone. When the leader has that of every living member it
// proposes a value: the one of the highest lock that anybody holds, or else a new one. Who gets the PROPOSE locks the value and says ACK.
// When every living member has, the value is decided. A member that learns that its leader is gone takes nothing of that one any more, and
// tells the next what it holds: so no value that was decided can be passed over.
//
// As long as a member knows of nobody gone but those that the last decision names, it sends up and down a binomial tree. From then on it
// sends straight to the leader, and a leader straight to everybody. What comes both ways does no harm.
import { Bitmap } from './bitmap.ts';
import { treeChildren, treeEnd, treeParent } from './graphs.ts';
import type { Roll } from './roll.ts';
import { type AgreementEvent, type AgreementListener, type AgreementState, moveAgreement } from './states.ts';
import { type Contribution, Gathered, isSameValue, type Lock, type Offer, type Operation, type Value } from './values.ts';
import {
  type AckMessage,
  type AgreementMessage,
  type DecideMessage,
  type ProposeMessage,
  SERVICE,
  type SeriesNumber,
  type StateMessage,
} from './wire.ts';

/** What an agreement needs of its communicator. */
export interface AgreementHost {
  readonly id: number;
  readonly listener: AgreementListener | undefined;
  /** Sends one message to each of these ranks, in this order. */
  send(roll: Roll, ranks: readonly number[], message: AgreementMessage): void;
  /** What this process, as the leader, adds to a value that makes a communicator. */
  offer(agreement: Agreement, operation: Operation, failed: Bitmap): Offer;
  /** It has been called, and its value is there. */
  handOut(agreement: Agreement): void;
  /** Its value is there, called or not. */
  handleDecided(agreement: Agreement): void;
  /** The others have gone on without this process: they take it for dead. */
  handleExcluded(text: string): void;
  /** A message that says nothing any more. */
  ignore(message: AgreementMessage): void;
}

export class Agreement {
  state: AgreementState = 'HELD';
  readonly series: SeriesNumber;
  readonly q: number;
  /** Final, from DECIDED on. */
  value: Value | undefined;
  /** The value that this member has locked, with the view of the leader that proposed it. */
  lock: Lock | undefined;
  /** The members among which it runs, or ran. */
  roll: Roll;
  private readonly host: AgreementHost;
  private own: Contribution | undefined;
  /** Named as failed by the last decision: in no tree, and waited for by nobody. */
  private base: Bitmap;
  /** Ranks that are not in the base, ascending: the nodes of the tree. */
  private participants: readonly number[] = [];
  /** Where this member is in that list. */
  private index = -1;
  private leader: number;
  /** The tree is passed by: somebody outside of the base is gone, or the leader says so. */
  private isDirect = false;
  /** Contributions that were sent to us as the leader; they may come before we know that we are. */
  private readonly led: Gathered;
  /** Contributions that came up the tree, on their way to the leader. */
  private readonly relayed: Gathered;
  /** The leader that `relayed` is for; -1 while it is empty. */
  private relayedView = -1;
  /** Who has locked what the leader proposes: at the leader all, at an inner node those of its subtree. */
  private readonly acks: Bitmap;
  private hasAcked = false;
  /** Members that pass the tree by: the leader's word goes to them directly. */
  private readonly askers: Bitmap;
  /** What has come down the tree has been passed on. */
  private hasPassedProposal = false;
  private hasPassedDecision = false;

  constructor(host: AgreementHost, roll: Roll, series: SeriesNumber, q: number) {
    this.host = host;
    this.roll = roll;
    this.series = series;
    this.q = q;
    this.base = new Bitmap(roll.size);
    this.led = new Gathered(roll.size);
    this.relayed = new Gathered(roll.size);
    this.acks = new Bitmap(roll.size);
    this.askers = new Bitmap(roll.size);
    this.leader = this.lowestLiving();
  }

  get name(): string {
    return `${this.host.id}/${this.series}/${this.q}`;
  }

  get isDecided(): boolean {
    return this.value !== undefined;
  }

  get generation(): number {
    return this.roll.generation;
  }

  // ---------------------------------------------------------------- events

  /** This member calls. `base`: the failed of the last decision, where that speaks of this generation's members. */
  begin(own: Contribution, base: Bitmap | undefined): void {
    this.note('begin');
    this.own = own;
    if (this.state === 'DECIDED') return this.host.handOut(this);
    this.move('GATHERING');
    this.takePlace(base);
    this.advance();
  }

  take(message: AgreementMessage): void {
    switch (message.type) {
      case SERVICE.STATE:
        return this.takeState(message);
      case SERVICE.PROPOSE:
        return this.takeProposal(message);
      case SERVICE.ACK:
        return this.takeAck(message);
      case SERVICE.DECIDE:
        return this.takeDecision(message);
    }
  }

  private takeState(message: StateMessage): void {
    const { from, view, gathered } = message;
    const isOurs = view === this.roll.self;
    this.note(isOurs ? 'STATE to us' : view === this.leader || this.state === 'HELD' ? 'STATE to our leader' : 'STATE to another leader');
    if (this.state === 'DECIDED') return this.answer(gathered.covers);
    if (isOurs) {
      this.led.addAll(gathered);
      if (message.isDirect) this.askers.add(from);
      // The proposal has not come to them: they ask, or something between them and us is gone.
      if (this.state === 'PROPOSING') return this.propose(this.missing(gathered.covers, this.acks));
      if (this.leader === view) this.advance();
      return;
    }
    if (this.state === 'HELD' ? this.relayedView >= 0 && this.relayedView !== view : view !== this.leader) return this.host.ignore(message);
    this.relayed.addAll(gathered);
    this.relayedView = view;
    if (this.state === 'GATHERING') this.advance();
    // What comes up the tree after we have left it goes on to the leader.
    else if (this.state !== 'HELD' && this.isDirect) this.sendState();
  }

  private takeProposal(message: ProposeMessage): void {
    const { view, value, isDirect } = message;
    if (this.state === 'DECIDED') {
      this.note('PROPOSE');
      this.answer(Bitmap.of(this.roll.size, [view]));
      return isDirect ? undefined : this.passDecision();
    }
    // A leader that is not ours is gone: whoever told us, this member has promised that it takes nothing of that one any more.
    if (view !== this.leader || view === this.roll.self || (this.state !== 'STATED' && this.state !== 'LOCKED')) {
      this.note('PROPOSE of another leader');
      return this.host.ignore(message);
    }
    if (this.lock !== undefined && !isSameValue(this.lock.value, value)) {
      return this.host.handleExcluded(`the leader of agreement ${this.name} proposes another value than the one that is locked here`);
    }
    this.note(this.state === 'LOCKED' ? 'PROPOSE again' : 'PROPOSE');
    if (this.state === 'STATED') {
      this.lock = { generation: this.roll.generation, rank: view, value };
      this.acks.add(this.roll.self);
      this.move('LOCKED');
    }
    if (!isDirect && !this.hasPassedProposal) {
      this.hasPassedProposal = true;
      this.host.send(this.roll, this.children(), { ...message, from: this.roll.self });
    }
    if (isDirect && !this.isDirect) {
      // The leader passes the tree by: what went up the tree may be lost on its way, so it is said again.
      this.isDirect = true;
      this.hasAcked = false;
    }
    this.advance();
  }

  private takeAck(message: AckMessage): void {
    const { from, view, covers } = message;
    this.note(view === this.leader ? 'ACK' : 'ACK to another leader');
    if (this.state === 'DECIDED') return this.answer(covers);
    if (view !== this.leader || this.state !== (view === this.roll.self ? 'PROPOSING' : 'LOCKED')) return this.host.ignore(message);
    this.acks.addAll(covers);
    if (message.isDirect) this.askers.add(from);
    if (this.state === 'LOCKED' && this.isDirect) this.hasAcked = false;
    this.advance();
  }

  private takeDecision({ value, isDirect }: DecideMessage): void {
    this.note('DECIDE');
    const known = this.value ?? this.lock?.value;
    if (known !== undefined && !isSameValue(known, value)) {
      return this.host.handleExcluded(`agreement ${this.name} was decided otherwise than the value that is held here`);
    }
    this.decide(value, isDirect);
    if (!isDirect) this.passDecision();
  }

  /** A member of this agreement's roll is gone, which the roll knows by now. */
  handleGone(rank: number): void {
    const leader = this.lowestLiving();
    const hasChanged = leader !== this.leader;
    this.note(hasChanged ? 'leader gone' : 'member gone');
    this.leader = leader;
    if (this.state === 'DECIDED') {
      // The new leader may be the one that does not know.
      if (hasChanged) this.tell([leader]);
      return;
    }
    if (this.state === 'HELD' || this.base.has(rank)) return;
    if (hasChanged) this.followLeader();
    else this.passTreeBy();
    this.advance();
  }

  /** Members have got successors. What was gathered and promised in the old generation is void; what is locked stays. */
  handleGeneration(roll: Roll): void {
    this.note('generation');
    const leaderBefore = this.roll.members[this.leader];
    this.roll = roll;
    this.led.clear();
    this.clearRelayed();
    this.askers.clear();
    this.base = new Bitmap(roll.size);
    this.leader = this.lowestLiving();
    if (this.state === 'DECIDED') {
      if (roll.members[this.leader] !== leaderBefore) this.tell([this.leader]);
      return;
    }
    if (this.state === 'HELD') return;
    if (this.state !== 'GATHERING') this.move('GATHERING');
    this.takePlace(undefined);
    this.advance();
  }

  /** Everybody has the value. */
  forget(): void {
    this.note('release');
    this.move('FORGOTTEN');
  }

  // ---------------------------------------------------------------- what follows from the state

  /** Does what the state calls for: called after each event. */
  private advance(): void {
    if (this.leader === this.roll.self) {
      if (this.state === 'GATHERING' && this.missing(this.needed(), this.led.covers).length === 0) this.lead();
      if (this.state === 'PROPOSING' && this.missing(this.needed(), this.acks).length === 0) this.decide((this.lock as Lock).value, true);
      return;
    }
    if (this.state === 'GATHERING' && (this.isDirect || this.isSubtreeWithin(this.relayed.covers))) {
      this.sendState();
      this.move('STATED');
    }
    if (this.state === 'LOCKED' && !this.hasAcked && (this.isDirect || this.isSubtreeWithin(this.acks))) this.sendAck();
  }

  /** Every living member has stated what it holds: the value is that of the highest lock, or a new one of all contributions. */
  private lead(): void {
    const { roll, led } = this;
    led.add(roll.self, this.own as Contribution, roll.dead, this.lock);
    const held = led.lock;
    const value = held?.value ?? led.combine(roll.generation, (operation, failed) => this.host.offer(this, operation, failed));
    this.lock = { generation: roll.generation, rank: roll.self, value };
    this.acks.add(roll.self);
    this.move('PROPOSING');
    this.host.listener?.onProposed?.(this, value, led.covers, held !== undefined);
    if (this.isDirect) return this.propose(this.missing(this.needed(), this.acks));
    this.host.send(roll, this.children(), this.proposal(false));
    this.propose(this.missing(this.askers, this.acks));
  }

  private decide(value: Value, isDirect: boolean): void {
    if (this.state === 'DECIDED') return;
    const { state, roll } = this;
    this.value = value;
    this.move('DECIDED');
    if (state === 'PROPOSING') {
      if (this.isDirect) this.tell(this.missing(this.needed(), Bitmap.of(roll.size, [roll.self])));
      else {
        this.passDecision();
        this.tell(this.missing(this.askers, new Bitmap(roll.size)));
      }
    } else {
      // Told before it has led: those whose STATE lies here wait for this member, whether it knows already that it is their leader or not.
      this.answer(this.led.covers);
      if (state === 'HELD' || (state === 'GATHERING' && isDirect)) this.answer(this.relayed.covers);
    }
    this.host.handleDecided(this);
    if (this.own !== undefined) this.host.handOut(this);
  }

  // ---------------------------------------------------------------- places

  /** Takes its place among those that are not in the base. */
  private takePlace(base: Bitmap | undefined): void {
    const { roll } = this;
    this.base = base ?? new Bitmap(roll.size);
    const participants: number[] = [];
    for (let rank = 0; rank < roll.size; rank++) if (!this.base.has(rank)) participants.push(rank);
    this.participants = participants;
    this.index = participants.indexOf(roll.self);
    this.leader = this.lowestLiving();
    this.isDirect = base === undefined || participants.some((rank) => roll.gone.has(rank));
    if (this.relayedView !== this.leader) this.clearRelayed();
    this.acks.clear();
    this.hasAcked = false;
    this.hasPassedProposal = false;
  }

  private lowestLiving(): number {
    const { roll, base } = this;
    let rank = 0;
    while (rank !== roll.self && (roll.gone.has(rank) || base.has(rank))) rank++;
    return rank;
  }

  /** The leader is another one: it is told all, and what was for the old one is void. */
  private followLeader(): void {
    this.isDirect = true;
    this.clearRelayed();
    this.acks.clear();
    this.hasAcked = false;
    if (this.leader === this.roll.self) {
      if (this.state !== 'GATHERING') this.move('GATHERING');
      return;
    }
    this.sendState();
    if (this.state !== 'STATED') this.move('STATED');
  }

  /** Somebody in the tree is gone: what was sent along it may be lost, so it is said again, straight to the leader. */
  private passTreeBy(): void {
    if (this.isDirect) return;
    this.isDirect = true;
    if (this.state === 'STATED') this.sendState();
    else if (this.state === 'LOCKED') this.hasAcked = false;
    else if (this.state === 'PROPOSING') this.propose(this.missing(this.needed(), this.acks));
  }

  /** Those that are not gone and not in the base. */
  private needed(): Bitmap {
    const needed = Bitmap.full(this.roll.size);
    needed.deleteAll(this.roll.gone);
    needed.deleteAll(this.base);
    return needed;
  }

  /** Ranks of `wanted` that are not in `there`, not gone and not ours, ascending. */
  private missing(wanted: Bitmap, there: Bitmap): number[] {
    const { gone, self } = this.roll;
    const list: number[] = [];
    for (const rank of wanted) if (rank !== self && !there.has(rank) && !gone.has(rank)) list.push(rank);
    return list;
  }

  private children(): number[] {
    if (this.index < 0) return [];
    const { gone } = this.roll;
    return treeChildren(this.index, this.participants.length)
      .map((index) => this.participants[index])
      .filter((rank) => !gone.has(rank));
  }

  /** Every node below this one is in that set. */
  private isSubtreeWithin(set: Bitmap): boolean {
    const end = treeEnd(this.index, this.participants.length);
    for (let index = this.index + 1; index < end; index++) if (!set.has(this.participants[index])) return false;
    return true;
  }

  private clearRelayed(): void {
    this.relayed.clear();
    this.relayedView = -1;
  }

  // ---------------------------------------------------------------- messages

  private place(isDirect: boolean) {
    const { series, q, roll, leader, host } = this;
    return { series, q, isDirect, id: host.id, generation: roll.generation, view: leader, from: roll.self };
  }

  /** Where this member's word goes: up the tree, or straight to the leader. */
  private upwards(): number[] {
    return [this.isDirect ? this.leader : this.participants[treeParent(this.index)]];
  }

  private sendState(): void {
    const { roll } = this;
    const gathered = new Gathered(roll.size);
    gathered.addAll(this.relayed);
    gathered.add(roll.self, this.own as Contribution, roll.dead, this.lock);
    this.host.send(roll, this.upwards(), { type: SERVICE.STATE, ...this.place(this.isDirect), gathered });
  }

  private sendAck(): void {
    this.hasAcked = true;
    this.host.send(this.roll, this.upwards(), { type: SERVICE.ACK, ...this.place(this.isDirect), covers: this.acks });
  }

  private proposal(isDirect: boolean): ProposeMessage {
    return { type: SERVICE.PROPOSE, ...this.place(isDirect), value: (this.lock as Lock).value };
  }

  private propose(ranks: readonly number[]): void {
    if (ranks.length > 0) this.host.send(this.roll, ranks, this.proposal(true));
  }

  private decision(isDirect: boolean): DecideMessage {
    const value = this.value as Value;
    return { type: SERVICE.DECIDE, ...this.place(isDirect), generation: value.generation, value };
  }

  /** Says that it is decided, straight to these. */
  private tell(ranks: readonly number[]): void {
    const others = ranks.filter((rank) => rank !== this.roll.self);
    if (others.length > 0) this.host.send(this.roll, others, this.decision(true));
  }

  private answer(covers: Bitmap): void {
    this.tell(this.missing(covers, new Bitmap(this.roll.size)));
  }

  /** Says it down the tree, once. */
  private passDecision(): void {
    if (this.hasPassedDecision) return;
    this.hasPassedDecision = true;
    const children = this.children();
    if (children.length > 0) this.host.send(this.roll, children, this.decision(false));
  }

  // ---------------------------------------------------------------- traces

  private move(to: AgreementState): void {
    moveAgreement(this, to, this.host.listener);
  }

  private note(event: AgreementEvent): void {
    this.host.listener?.onEvent?.(this, event);
  }
}
