// The planted mistakes: each is an exact edit of the production code, made when the simulator is built with it (plant.ts). The product
// contains none of them. It is an error if the text to be replaced does not occur exactly once in its file, so this table cannot become
// stale.
import type { Profile } from '../../../tools/sim/campaign.ts';
import { type Edit, edit } from './edit.ts';
import { PLANTED_GROUPS } from './group-table.ts';
import { PLANTED_HEALTH } from './health-table.ts';
import { PLANTED_LOGS } from './log-table.ts';
import { PLANTED_REPLICAS } from './replica-table.ts';
import { PLANTED_SAVES } from './save-table.ts';
import { PLANTED_SPARES } from './spare-table.ts';
import { PLANTED_ULFM } from './ulfm-table.ts';

/** Who finds it: random runs of a profile, or a scenario of that name. */
export type FoundBy =
  | {
      readonly profile: Profile;
      /** What `npm test` plays: from this seed (0 unless said) up to that one, which is not played. */
      readonly from?: number;
      readonly within: number;
    }
  | { readonly scenario: string };

export interface Planted {
  readonly name: string;
  /** What is wrong with it. */
  readonly sentence: string;
  readonly edits: readonly Edit[];
  /** Of a guarded one: what finds it as soon as its guard is gone, too, and passes while the guard stands alone. */
  readonly found: readonly FoundBy[];
  /** Another guard of the code makes up for it: it is equivalent, and cannot be found. */
  readonly guard?: {
    /** Why. */
    readonly because: string;
    /** Takes that guard away. */
    readonly edits: readonly Edit[];
  };
}

const BML = 'src/bml/bml.ts';
const BML_PEER = 'src/bml/peer.ts';
const CORE = 'src/pml/core.ts';
const ENGINE = 'src/progress/engine.ts';
const SIM_ENDPOINT = 'tools/sim/sim-endpoint.ts';
const EAGER = 'src/pml/eager.ts';
const GIVEN_UP = 'src/pml/given-up.ts';
const INBOX = 'src/pml/inbox.ts';
const MATCH = 'src/pml/match.ts';
const OWED = 'src/pml/owed.ts';
const PML = 'src/pml/pml.ts';
const RECEIVER = 'src/pml/receiver.ts';
const SENDER = 'src/pml/sender.ts';

export const PLANTED: readonly Planted[] = [
  {
    name: 'no-duplicate-check',
    sentence: 'A MATCH, RNDV or RGET with a number that was there before is taken again.',
    edits: [
      edit(INBOX, 'if (ahead < 0 || flow.early.has(packet.seq) || flow.taken?.has(packet.seq) === true) {', 'if (false as boolean) {'),
    ],
    found: [{ profile: 'swarm', within: 10 }],
  },
  {
    name: 'early-dropped',
    sentence: 'An envelope that overtook a lower number is dropped instead of kept.',
    edits: [edit(INBOX, 'core.counters.earlyArrivals++;', 'core.counters.earlyArrivals++;\n      if (ahead > 0) return;')],
    found: [{ profile: 'swarm', within: 10 }],
  },
  {
    name: 'newest-first',
    sentence: 'An arrival matches the newest posted receive that fits instead of the oldest.',
    edits: [edit(MATCH, 'return a.postedSerial < b.postedSerial ? a : b;', 'return a.postedSerial < b.postedSerial ? b : a;')],
    found: [{ profile: 'swarm', within: 10 }],
  },
  {
    name: 'count-twice',
    sentence: 'A restart begins at the first byte, and bytes are counted by length: what arrives twice counts twice.',
    edits: [
      edit(
        RECEIVER,
        'const missing = message.received.missing(0, message.takeBytes);',
        'const missing: [number, number][] = [[0, message.takeBytes]];',
      ),
      edit(RECEIVER, 'if (covered) {', 'if (false as boolean) {'),
      edit(
        RECEIVER,
        'else message.received.add(sink.from, sink.to);\n',
        // As bfo did: bytes that were there before stand for as many that are not.
        `else {
      let again = sink.to - sink.from - message.received.add(sink.from, sink.to);
      for (const [from, to] of message.received.missing(0, message.takeBytes)) {
        again -= message.received.add(from, Math.min(to, from + again));
      }
    }
`,
      ),
    ],
    found: [{ profile: 'swarm', within: 60 }],
  },
  {
    name: 'no-fence',
    sentence: 'NOTIFY and RAILDOWN fence no rails, and PUT windows are never closed.',
    edits: [
      edit(CORE, "this.bml.fence(peer.bml, rail, epoch, { kind: 'fenced', text });", ''),
      edit(RECEIVER, 'for (const window of windows) window.registration?.deregister();', ''),
    ],
    found: [{ profile: 'stress', within: 60 }],
  },
  {
    name: 'keep-sinks',
    sentence: 'Sinks are never revoked, neither by a NOTIFY of a new epoch nor when the receive completes.',
    edits: [
      edit(RECEIVER, 'for (const open of message.openSinks) if (open.from < sink.to && sink.from < open.to) covered = true;', ''),
      edit(
        RECEIVER,
        'private revokeSinks(message: RecvMessage): void {',
        'private revokeSinks(message: RecvMessage): void {\n    if (message) return;',
      ),
    ],
    found: [{ profile: 'swarm', within: 60 }],
  },
  {
    name: 'notify-unanswered',
    sentence: 'A NOTIFY for a finished message is not answered.',
    edits: [edit(RECEIVER, 'this.owed.restartNack(peer, packet, packet.receiverSlot, packet.receiverGeneration);', '')],
    found: [{ profile: 'swarm', within: 40 }],
  },
  {
    name: 'notify-duplicate-revokes',
    sentence: 'A NOTIFY of the current epoch revokes sinks and starts over.',
    edits: [
      edit(
        RECEIVER,
        'if (ahead === 0) {\n      // A NOTIFY of the current epoch',
        'if (false as boolean) {\n      // A NOTIFY of the current epoch',
      ),
    ],
    // Rare (a NOTIFY twice while a sink is open): seed 2366 is the first of this profile, so the search begins shortly before it.
    found: [{ profile: 'stress', from: 2360, within: 2400 }],
  },
  {
    name: 'restart-ack-twice',
    sentence: 'A RESTARTACK is obeyed also when none is waited for.',
    edits: [
      edit(
        SENDER,
        "if (message.state !== 'NOTIFYING' || packet.epoch !== message.epoch) return this.stale();",
        "if ((message.state !== 'NOTIFYING' && message.state !== 'STREAMING') || packet.epoch !== message.epoch) return this.stale();",
      ),
      edit(
        SENDER,
        "    moveSend(message, 'STREAMING', this.core);\n    this.core.queueStream(message);\n    this.checkSent(message);\n    this.settle(message);\n  }\n\n  onRestartNack(",
        "    if (message.state === 'NOTIFYING') moveSend(message, 'STREAMING', this.core);\n    this.core.queueStream(message);\n    this.checkSent(message);\n    this.settle(message);\n  }\n\n  onRestartNack(",
      ),
    ],
    found: [{ profile: 'stress', within: 20 }],
  },
  {
    name: 'old-epoch-counts',
    sentence: 'Completions of an older epoch count.',
    edits: [
      edit(SENDER, "if (use.epoch === message.epoch && message.state === 'STREAMING') {", "if (message.state === 'STREAMING') {"),
      edit(SENDER, "if (message.state === 'STREAMING' && op.epoch === message.epoch) {", "if (message.state === 'STREAMING') {"),
    ],
    found: [{ profile: 'swarm', within: 200 }, { scenario: 'bfo 9.2 RNDVRESTARTACK arrived unreported, so repeated, 5 rails' }],
  },
  {
    name: 'fence-by-rail',
    sentence: 'RAILDOWN and NOTIFY end the live epoch of a rail whatever epoch they name.',
    edits: [
      edit(
        CORE,
        'this.bml.fence(peer.bml, rail, epoch,',
        'this.bml.fence(peer.bml, rail, Math.max(epoch, peer.bml.rails[rail]?.epoch ?? 0),',
      ),
    ],
    found: [{ profile: 'swarm', within: 60 }],
  },
  {
    name: 'complete-on-sent',
    sentence: 'A send is complete when its last byte was given to a rail, not when every byte is delivered.',
    edits: [edit(SENDER, '!message.toSend.isEmpty || message.inFlightBytes > 0) return;', '!message.toSend.isEmpty) return;')],
    found: [{ profile: 'swarm', within: 10 }],
  },
  {
    name: 'eager-not-retained',
    sentence: 'An eager message in doubt is not sent again.',
    edits: [edit(EAGER, 'else if (status === DELIVERED) this.finish(message);', 'else if (status >= DELIVERED) this.finish(message);')],
    found: [{ profile: 'swarm', within: 20 }],
  },
  {
    name: 'copy-in-doubt-ends',
    sentence: 'A message whose copy over a second rail is in doubt counts as delivered.',
    edits: [
      edit(EAGER, "if (status === DELIVERED && message.state === 'ENVELOPE')", "if (status >= DELIVERED && message.state === 'ENVELOPE')"),
    ],
    found: [{ profile: 'stress', from: 100, within: 120 }],
  },
  {
    name: 'hedged-record-again',
    sentence: 'The record of a message is used again while a copy of it is on a second rail, whose end then ends another message.',
    edits: [edit(EAGER, 'if (!message.envelopeQueued && !message.isHedged)', 'if (!message.envelopeQueued)')],
    found: [{ profile: 'impaired', from: 1470, within: 1490 }],
  },
  {
    name: 'ack-once',
    sentence: 'An ACK in doubt is not sent again.',
    edits: [
      edit(
        RECEIVER,
        'if (status === DELIVERED) {\n      message.answerDelivered',
        'if (status >= DELIVERED) {\n      message.answerDelivered',
      ),
    ],
    found: [{ profile: 'swarm', within: 20 }],
  },
  {
    name: 'fin-once',
    sentence: 'A FIN in doubt is not sent again.',
    edits: [
      edit(SENDER, 'if (status === DELIVERED) {\n      message.finsOwed = ', 'if (status >= DELIVERED) {\n      message.finsOwed = '),
      edit(RECEIVER, 'if (status === DELIVERED) {\n      message.finDelivered', 'if (status >= DELIVERED) {\n      message.finDelivered'),
    ],
    found: [{ profile: 'stress', within: 20 }],
  },
  {
    name: 'credit-increment',
    sentence: 'A CREDIT is an increment: it adds to the limit, however often it comes.',
    edits: [
      edit(
        PML,
        '    const placed = packet.type === PACKET.FRAG;\n',
        `    if (packet.type === PACKET.CREDIT) peer.creditLimit += this.core.options.unexpectedBytesMax / 4;
    const placed = packet.type === PACKET.FRAG;\n`,
      ),
    ],
    found: [{ profile: 'swarm', within: 700 }],
  },
  {
    name: 'retained-forever',
    sentence: 'The copy of a delivered eager message is not released.',
    edits: [edit(EAGER, 'core.retainedBytes -= message.bytes;', '')],
    found: [{ profile: 'swarm', within: 10 }],
  },
  {
    name: 'eager-credit-kept',
    sentence: 'An eager message whose receive is posted never gives its credit back.',
    edits: [edit(INBOX, '    core.released(peer, charge);\n', '')],
    found: [{ profile: 'swarm', within: 10 }],
  },
  {
    name: 'tail-stays-counted',
    sentence: 'What lies above the 128th missing range stays counted, though the sender will send it again.',
    edits: [edit(RECEIVER, 'if (tail !== undefined) message.received.remove(tail[0], message.takeBytes);', '')],
    found: [{ scenario: 'hole 18 more missing ranges than a RESTARTACK holds: the rest above the last one is sent again (2 rails)' }],
  },
  {
    name: 'old-restart-ack',
    sentence: 'A RESTARTACK of an older epoch is obeyed while one is waited for.',
    edits: [
      edit(
        SENDER,
        "if (message.state !== 'NOTIFYING' || packet.epoch !== message.epoch) return this.stale();",
        "if (message.state !== 'NOTIFYING') return this.stale();",
      ),
    ],
    found: [{ profile: 'stress', from: 120, within: 130 }],
  },
  {
    name: 'old-frag-answers',
    sentence: 'A FRAG of an older epoch proves that the RESTARTACK came.',
    edits: [
      edit(
        RECEIVER,
        '    if (ahead < 0) {\n      core.counters.fragStale++;\n      return sink;',
        '    if (ahead < 0) {\n      this.answered(message);\n      core.counters.fragStale++;\n      return sink;',
      ),
    ],
    found: [{ profile: 'stress', from: 1070, within: 1085 }],
  },
  {
    name: 'raildown-once',
    sentence: 'A RAILDOWN in doubt is not sent again.',
    edits: [
      edit(OWED, 'if (status === DELIVERED) peer.railDowns.delete(use.rail);', 'if (status >= DELIVERED) peer.railDowns.delete(use.rail);'),
    ],
    found: [{ profile: 'swarm', from: 285, within: 295 }],
  },
  {
    name: 'unmatched-at-bye-succeeds',
    sentence: 'A rendezvous send that was never matched ends well when its peer says BYE.',
    edits: [edit(SENDER, 'message.request.error = peer.left;', '')],
    found: [{ profile: 'death', within: 20 }],
  },
  {
    name: 'fence-below',
    sentence: 'A fence up to an epoch leaves that epoch in the tables.',
    edits: [edit(BML, 'rail.epoch <= epoch) this.takeOut(rail, reason);', 'rail.epoch < epoch) this.takeOut(rail, reason);')],
    found: [{ profile: 'swarm', from: 784, within: 794 }],
  },
  {
    name: 'gets-not-awaited',
    sentence: 'Own reads under way are not waited for before a NOTIFY is answered.',
    edits: [
      edit(
        RECEIVER,
        "moveRecv(message, 'FENCING', core);\n    if (message.getsUnderWay === 0) this.fenced(message);",
        "moveRecv(message, 'FENCING', core);\n    this.fenced(message);",
      ),
    ],
    found: [{ profile: 'swarm', from: 320, within: 335 }],
  },
  {
    name: 'returned-on-rail',
    sentence: "The user's buffer is given back while a frame of it is on a rail.",
    edits: [edit(SENDER, 'if (!message.logicallyComplete || message.itemsOnRail > 0) return;', 'if (!message.logicallyComplete) return;')],
    found: [{ profile: 'stress', from: 266, within: 280 }],
  },
  {
    name: 'doubt-is-told',
    sentence: 'A credit limit that was in doubt is taken for told.',
    edits: [
      edit(
        PML,
        'if (status === DELIVERED) {\n      if (peer.creditTold < frame.creditLimit)',
        'if (status >= DELIVERED) {\n      if (peer.creditTold < frame.creditLimit)',
      ),
    ],
    found: [{ profile: 'swarm', within: 20 }],
  },
  {
    name: 'older-raildown-stays',
    sentence: 'RAILDOWN of a newer epoch does not replace an older one that is owed.',
    edits: [
      edit(
        OWED,
        'if (owed === undefined || owed.epoch < epoch) peer.railDowns.set(railIndex, { epoch, onRail: false });',
        'if (owed === undefined) peer.railDowns.set(railIndex, { epoch, onRail: false });',
      ),
    ],
    found: [{ profile: 'swarm', from: 3870, within: 3880 }],
  },
  {
    name: 'duplicate-returns-credit',
    sentence: 'A copy of a message that is dropped gives credit back.',
    edits: [
      edit(
        INBOX,
        'core.counters.envelopeDuplicates++;',
        `core.counters.envelopeDuplicates++;
      if ((packet.flags & FLAG.CHARGED) !== 0) peer.releasedBytes += payload.length + ENVELOPE_CHARGE_BYTES;`,
      ),
    ],
    found: [{ profile: 'swarm', within: 10 }],
  },
  {
    name: 'puts-not-awaited',
    sentence: 'Own puts under way are not waited for before NOTIFY.',
    edits: [
      edit(
        SENDER,
        "moveSend(message, 'DRAINING', this.core);\n    if (message.putsUnderWay === 0) this.notify(message);",
        "moveSend(message, 'DRAINING', this.core);\n    this.notify(message);",
      ),
    ],
    found: [{ profile: 'stress', from: 360, within: 370 }],
  },
  {
    name: 'stale-frag-counts',
    sentence: 'A FRAG of an older epoch, whose bytes go into nothing, counts as received.',
    edits: [
      edit(
        RECEIVER,
        '    if (ahead < 0) {\n      core.counters.fragStale++;\n      return sink;',
        '    if (ahead < 0) {\n      sink.message = message;\n      return sink;',
      ),
    ],
    found: [{ profile: 'stress', from: 115, within: 125 }],
  },
  {
    name: 'windows-stay-registered',
    sentence: 'The windows for puts stay registered when a receive ends with its peer.',
    edits: [
      edit(
        RECEIVER,
        "    this.closeWindows(message.offers.takeAll());\n    moveRecv(message, 'DONE', core);",
        "    moveRecv(message, 'DONE', core);",
      ),
    ],
    found: [{ profile: 'death', within: 10 }],
  },
  {
    name: 'send-windows-stay-open',
    sentence: 'The memory of a send that is read by its receiver stays registered when the send is done.',
    edits: [
      edit(
        SENDER,
        '    message.envelopeDelivered = true;\n    this.closeWindows(message);\n    message.putTargets.clear();',
        '    message.envelopeDelivered = true;\n    message.putTargets.clear();',
      ),
    ],
    found: [{ profile: 'swarm', within: 10 }],
  },
  {
    name: 'suspect-never-used',
    sentence: 'A suspect rail is never used, although no other carries.',
    edits: [
      edit(BML_PEER, "if (usable.length === 0) usable = this.rails.filter((rail) => rail.state === 'SUSPECT');", ''),
      edit(BML_PEER, 'if (usable.length === 0) usable = this.rails.filter((rail) => rail.isCarrying);', ''),
    ],
    found: [{ scenario: 'guard a suspect rail carries where no other does' }],
  },
  {
    name: 'no-table-at-rail-up',
    sentence: 'When a rail comes up, the table of dead epochs is not sent.',
    edits: [
      edit(
        OWED,
        'for (const dead of this.core.bml.deadEpochs(peer.bml)) {',
        'for (const dead of [] as { rail: number; epoch: number }[]) {',
      ),
    ],
    found: [{ profile: 'swarm', from: 288, within: 289 }],
    guard: {
      because:
        'Each loss is owed from its moment on, until the RAILDOWN that tells of it is delivered: the table repeats what is owed or known.',
      edits: [
        edit(
          OWED,
          'if (status === DELIVERED) peer.railDowns.delete(use.rail);',
          'if (status >= DELIVERED) peer.railDowns.delete(use.rail);',
        ),
      ],
    },
  },
  {
    name: 'sinks-kept-at-death',
    sentence: 'Sinks are not revoked when the peer dies.',
    edits: [
      edit(
        RECEIVER,
        '      this.revokeSinks(message);\n      const { request } = message;\n      message.request = undefined;\n      if (request !== undefined) {\n        request.error',
        '      const { request } = message;\n      message.request = undefined;\n      if (request !== undefined) {\n        request.error',
      ),
    ],
    found: [{ scenario: 'guard a fragment is half written when its sender is declared dead' }],
    guard: {
      because: 'The engine has fenced every rail of the peer before, and a fenced rail writes not one byte more.',
      edits: [edit(ENGINE, "this.bml.fence(peer.bml, rail.index, rail.highestSeen, { kind: 'peer-failed', text });", 'void rail;')],
    },
  },
  {
    name: 'leaves-owing-nack',
    sentence: 'A rank leaves the job though it owes a RESTARTNACK.',
    edits: [
      edit(
        PML,
        'if (peer.sends.size > 0 || peer.recvs.size > 0 || peer.restartNacks.size > 0) return false;',
        'if (peer.sends.size > 0 || peer.recvs.size > 0) return false;',
      ),
    ],
    found: [{ scenario: 'guard a rank leaves while its RESTARTNACK is lost' }],
    guard: {
      because: 'BYE says the same to every message that waits for an answer: the peer owes nothing, so it has everything.',
      edits: [
        edit(
          SENDER,
          "if (message.state === 'ENVELOPE' && message.request !== undefined) {",
          "if (message.state === 'NOTIFYING') continue;\n      if (message.state === 'ENVELOPE' && message.request !== undefined) {",
        ),
      ],
    },
  },
  {
    name: 'dead-epoch-admitted',
    sentence: 'A handshake of an epoch that is over is admitted.',
    edits: [edit(ENGINE, 'if (hello.epoch <= Math.max(rail.highestDead, rail.epoch)) {', 'if (false as boolean) {')],
    found: [{ scenario: 'guard a handshake of an epoch that is over comes late' }],
    guard: {
      because:
        'A rail accepts no epoch at or below the highest that it had or that was fenced, and the BML fences one that it knows to be over.',
      edits: [
        edit(SIM_ENDPOINT, 'if (epoch <= highest) return highest;', 'if (epoch <= highest && epoch < 0) return highest;'),
        edit(
          BML,
          "rail.endpoint.fence(rail.highestDead, { kind: 'fenced', text: 'the epoch was over before it began' });\n      return;",
          'void nowMs;',
        ),
      ],
    },
  },
  {
    name: 'given-up-not-copied',
    sentence: 'A send that was given up goes on reading the buffer of its user.',
    edits: [edit(GIVEN_UP, 'message.readFrom(copy.length === 0 ? EMPTY_IOV : new Iov([copy]), from);', '')],
    found: [{ profile: 'giveup', within: 20 }],
  },
  {
    name: 'given-up-rails-read',
    sentence: 'A send that was given up ends although a rail still reads the buffer of its user.',
    edits: [edit(GIVEN_UP, 'if (endpoint.letGo?.() !== true) waits =', 'if (endpoint.letGo === undefined) waits =')],
    found: [{ profile: 'giveup', within: 60 }],
  },
  {
    name: 'given-up-puts-read',
    sentence: 'A send that was given up ends although puts of it run.',
    edits: [edit(GIVEN_UP, 'if (message.putsUnderWay > 0) return', 'if (message.putsUnderWay < 0) return')],
    found: [{ scenario: 'given up after 1500 us: puts, no cut' }],
  },
  {
    name: 'given-up-hole-kept',
    sentence:
      'Of a send that was given up, only what no frame has carried yet is copied, and not what was carried and may have to be sent again.',
    edits: [
      edit(
        GIVEN_UP,
        'const first = message.delivered.firstMissing(0, message.takeBytes);',
        'const first = message.toSend.isEmpty ? -1 : message.toSend.first;',
      ),
    ],
    found: [{ profile: 'giveup', within: 120 }],
  },
  {
    name: 'given-up-unbounded',
    sentence: 'Copies of sends that were given up know no bound.',
    edits: [edit(GIVEN_UP, 'if (this.core.abandonedBytes + to - from > abandonedBytesMax)', 'if (abandonedBytesMax < 0)')],
    found: [{ profile: 'giveup', within: 20 }],
  },
  {
    name: 'old-fin-counts',
    sentence: 'A FIN of an older epoch counts.',
    edits: [
      edit(RECEIVER, "message.state !== 'RECEIVING' || serialDiff(packet.epoch, message.epoch) < 0) {", "message.state !== 'RECEIVING') {"),
    ],
    found: [{ scenario: 'guard a FIN of an older epoch comes while the answer to the restart is lost' }],
  },
  {
    name: 'older-nack-wins',
    sentence: 'Of two RESTARTNACKs that are owed to a message the older stays.',
    edits: [edit(OWED, 'if (owed !== undefined && serialDiff(packet.epoch, owed.epoch) < 0) return;', 'if (owed !== undefined) return;')],
    found: [{ scenario: 'guard a NOTIFY of an older epoch comes late, and is answered while that of the next is on its way' }],
    guard: {
      because: 'A RESTARTNACK ends its message whatever epoch it names: the message is complete for good.',
      edits: [
        edit(
          SENDER,
          "if (message.state !== 'NOTIFYING') return this.stale();\n    this.core.counters.restartNacks++;",
          "if (message.state !== 'NOTIFYING' || packet.epoch !== message.epoch) return this.stale();\n    this.core.counters.restartNacks++;",
        ),
      ],
    },
  },
  ...PLANTED_HEALTH,
  ...PLANTED_SPARES,
  ...PLANTED_ULFM,
  ...PLANTED_SAVES,
  ...PLANTED_LOGS,
  ...PLANTED_GROUPS,
  ...PLANTED_REPLICAS,
];
