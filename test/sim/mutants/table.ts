// The planted mistakes: each is an exact edit of the production code, made when the simulator is built with it (plant.ts). None of them
// is in the product. A text to be replaced that does not stand exactly once in its file is an error, so this table cannot rot.
import type { Profile } from '../../../src/sim/campaign.ts';

export interface Edit {
  /** From the root of the checkout. */
  readonly file: string;
  readonly find: string;
  readonly replace: string;
}

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
  readonly found: readonly FoundBy[];
}

const CORE = 'src/pml/core.ts';
const EAGER = 'src/pml/eager.ts';
const MATCH = 'src/pml/match.ts';
const PML = 'src/pml/pml.ts';
const RECEIVER = 'src/pml/receiver.ts';
const SENDER = 'src/pml/sender.ts';

const edit = (file: string, find: string, replace: string): Edit => ({ file, find, replace });

export const PLANTED: readonly Planted[] = [
  {
    name: 'no-duplicate-check',
    sentence: 'A MATCH, RNDV or RGET with a number that was there before is taken again.',
    edits: [edit(RECEIVER, 'if (ahead < 0 || flow.early.has(packet.seq)) {', 'if (false as boolean) {')],
    found: [{ profile: 'swarm', within: 10 }],
  },
  {
    name: 'early-dropped',
    sentence: 'An envelope that overtook a lower number is dropped instead of kept.',
    edits: [edit(RECEIVER, 'core.counters.earlyArrivals++;', 'core.counters.earlyArrivals++;\n      if (ahead > 0) return;')],
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
        '    message.received.add(sink.from, sink.to);\n',
        // As bfo did: bytes that were there before stand for as many that are not.
        `    let again = sink.to - sink.from - message.received.add(sink.from, sink.to);
    for (const [from, to] of message.received.missing(0, message.takeBytes)) {
      again -= message.received.add(from, Math.min(to, from + again));
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
    edits: [edit(RECEIVER, 'this.oweRestartNack(peer, packet, packet.receiverSlot, packet.receiverGeneration);', '')],
    found: [{ profile: 'swarm', within: 40 }],
  },
  {
    name: 'notify-duplicate-revokes',
    sentence: 'A NOTIFY of the current epoch revokes sinks and starts over.',
    edits: [edit(RECEIVER, 'if (ahead === 0) {\n      // Of the current epoch', 'if (false as boolean) {\n      // Of the current epoch')],
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
];
