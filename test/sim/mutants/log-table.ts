// The planted mistakes in logs and successions (src/pml/tap.ts, src/pml/succession.ts, src/ft/log): part of table.ts. The random runs of the
// profile `log` find them.
import { edit } from './edit.ts';
import type { Planted } from './table.ts';

const HOLDINGS = 'src/ft/events/holdings.ts';
const INBOX = 'src/pml/inbox.ts';
const LOG = 'src/ft/log/send-log.ts';
const RECORDER = 'src/ft/events/recorder.ts';
const SLABS = 'src/ft/log/slabs.ts';
const SUCCESSION = 'src/pml/succession.ts';
const TAP = 'src/pml/tap.ts';

export const PLANTED_LOGS: readonly Planted[] = [
  {
    name: 'holes-forgotten',
    sentence: 'What was under way from a process that died counts as received, and its successor is not asked for it.',
    edits: [edit(SUCCESSION, '[...(holes?.keys() ?? []), ...lacking.holes]', '[...lacking.holes]')],
    found: [{ profile: 'log', within: 60 }],
  },
  {
    name: 'hole-asked-twice',
    sentence: 'A hole that was filled stays one, and what comes for it again is taken again.',
    edits: [edit(INBOX, '    flow.holes?.delete(packet.seq);\n', '')],
    found: [{ profile: 'log', within: 60 }],
  },
  {
    name: 'hole-sent-twice',
    sentence: 'A successor sends what a survivor lacks in the middle twice.',
    edits: [
      edit(
        TAP,
        '      this.transmit(peer, logged);\n    }\n',
        '      this.transmit(peer, logged);\n      if (channel?.needs.get(ctx)?.holes.has(seq)) this.transmit(peer, logged);\n    }\n',
      ),
    ],
    found: [{ profile: 'log', within: 60 }],
  },
  {
    name: 'synchronous-outlives-its-sender',
    sentence:
      'A short synchronous message that waits for its receive stays when its sender dies, so that its successor does not wait for the match.',
    edits: [edit(SUCCESSION, 'return isWhole(envelope) && (envelope.flags & FLAG.SYNC) === 0;', 'return isWhole(envelope);')],
    found: [{ profile: 'log', within: 60 }],
  },
  {
    name: 'trimmed-at-the-cut',
    sentence: 'The log is trimmed when a save is cut, before it is committed.',
    edits: [
      edit(
        SUCCESSION,
        '    options.log.cut();\n    return',
        '    options.log.cut();\n    options.log.commit((rank, ctx, seq) => serialDiff(seq, this.peer(rank).flowOut(ctx).nextSeq) < 0);\n    return',
      ),
    ],
    found: [{ profile: 'log', from: 90, within: 130 }],
  },
  {
    name: 'trimmed-beyond-the-cut',
    sentence: 'When a save is committed, all that has been sent by then leaves the log, and not only what was sent before the cut.',
    edits: [
      edit(
        SUCCESSION,
        '(peer, ctx, seq) => gone.has(ctx) || ',
        '(peer, ctx, seq) => gone.has(ctx) || serialDiff(seq, this.peer(peer).flowOut(ctx).nextSeq) < 0 || ',
      ),
    ],
    found: [{ profile: 'log', within: 60 }],
  },
  {
    name: 'suppressed-unnumbered',
    sentence: 'A message that does not leave, since its receiver has it, takes no number.',
    edits: [edit(TAP, '    nextSeq(peer, ctx);\n', '    if (isWanted) nextSeq(peer, ctx);\n')],
    found: [{ profile: 'log', within: 60 }],
  },
  {
    name: 'suppressed-not-logged',
    sentence: 'A message that does not leave, since its receiver has it, is not logged.',
    edits: [
      edit(
        TAP,
        '    const answer = log.add(peer.rank, ctx, tag, seq, signature, sync, buffer, this.isNeeded);\n',
        "    const isSuppressed = channel?.state === 'REPLAYING' && !channel.wants(ctx, seq);\n    const answer = isSuppressed ? UNLOGGED : log.add(peer.rank, ctx, tag, seq, signature, sync, buffer, this.isNeeded);\n",
      ),
    ],
    found: [{ profile: 'log', within: 60 }],
  },
  {
    name: 'log-backwards',
    sentence: 'What a successor lacks is sent newest first.',
    edits: [
      edit(
        SUCCESSION,
        'for (const logged of this.tap.options.log.messagesTo(rank)) {\n      if (channel.wants(',
        'for (const logged of [...this.tap.options.log.messagesTo(rank)].reverse()) {\n      if (channel.wants(',
      ),
    ],
    found: [{ profile: 'log', within: 60 }],
    guard: {
      because: 'Messages have numbers, and a receiver that gets a higher one first keeps it until the lower ones are there.',
      edits: [edit(INBOX, '      flow.early.set(packet.seq, envelope);\n', '      this.core.releaseCharge(envelope);\n')],
    },
  },
  {
    name: 'sends-before-sync',
    sentence: 'Messages to a successor leave before it has said what it has.',
    edits: [edit(TAP, "if (channel?.state === 'HELD' || channel?.state === 'AWAITED') {", "if (channel?.state === 'HELD') {")],
    found: [{ profile: 'log', from: 90, within: 130 }],
  },
  {
    name: 'digests-not-compared',
    sentence: 'What a successor sends again is not compared with what was received.',
    edits: [edit(TAP, 'if (crc === had.crc && buffer.bytes === had.bytes) return;', 'if (crc === had.crc || had.bytes >= 0) return;')],
    found: [{ profile: 'log', from: 180, within: 220 }],
  },
  {
    name: 'digests-lost-with-the-dead',
    sentence: 'The digests of what came from a process are forgotten with it.',
    edits: [
      edit(
        SUCCESSION,
        '    this.tap.moveDigests(rank, successor);\n',
        '    this.tap.moveDigests(rank, successor);\n    for (const flow of peer.flowsIn.values()) flow.digests = undefined;\n',
      ),
    ],
    found: [{ profile: 'log', from: 180, within: 220 }],
  },
  {
    name: 'forgotten-with-the-second',
    sentence: 'The numbers of a successor that dies before it has said what it has are forgotten with it.',
    edits: [
      edit(
        SUCCESSION,
        "      if (peer.channel.state !== 'AWAITED') this.tap.suspended++;\n",
        "      if (peer.channel.state !== 'AWAITED') this.tap.suspended++;\n      else peer.flowsIn.clear();\n",
      ),
    ],
    found: [{ profile: 'log', from: 120, within: 160 }],
  },
  {
    name: 'held-twice',
    sentence: 'A channel whose successor dies, too, is counted twice among those for which the log must be kept.',
    edits: [edit(SUCCESSION, "if (peer.channel.state !== 'AWAITED') this.tap.suspended++;", 'this.tap.suspended++;')],
    found: [{ profile: 'log', from: 194, within: 234 }],
  },
  {
    name: 'kept-until-heard',
    sentence: 'The log is kept until the decision about successors is heard, and not until they have said what they lack.',
    edits: [edit(TAP, 'this.suspended > 0 || this.mustKeep', 'this.mustKeep')],
    found: [{ profile: 'log', from: 300, within: 320 }],
  },
  {
    name: 'kept-from-hearing',
    sentence: 'A process that has said that its log is whole gives it up before it has heard what is decided.',
    edits: [edit(TAP, 'this.suspended > 0 || this.mustKeep', 'this.suspended > 0')],
    found: [{ profile: 'log', within: 60 }],
  },
  {
    name: 'early-kept',
    sentence: 'What overtook a message that was lost with its sender waits on for its turn.',
    edits: [
      edit(
        INBOX,
        '      for (const envelope of early.values()) this.core.releaseCharge(envelope);\n      early.clear();\n',
        '      for (const envelope of early.values()) this.core.releaseCharge(envelope);\n',
      ),
    ],
    found: [{ profile: 'log', from: 800, within: 840 }],
  },
  {
    name: 'posted-to-the-dead',
    sentence: 'Receives that are posted for a process that died are not those of its successor.',
    edits: [edit(SUCCESSION, 'if (this.isCovered(ctx)) context.rename(rank, successor);', 'if (ctx < 0) context.rename(rank, successor);')],
    found: [{ profile: 'log', within: 60 }],
  },
  {
    name: 'unexpected-not-saved',
    sentence: 'What has come and waits for its receive is not in the save.',
    edits: [
      edit(
        SUCCESSION,
        '        unexpected.push({ source, ctx, tag, seq, signature, payload: new Uint8Array(payload) });\n',
        '        if (seq < 0) unexpected.push({ source, ctx, tag, seq, signature, payload: new Uint8Array(payload) });\n',
      ),
    ],
    found: [{ profile: 'log', within: 60 }],
  },
  {
    name: 'answered-as-a-copy',
    sentence: 'After all went back, what a successor sends for a hole is dropped as a copy, and its credit is not given back.',
    edits: [edit(SUCCESSION, "if (channel?.state === 'HELD') flow.holes = undefined;", 'flow.holes = undefined;')],
    found: [{ profile: 'log', within: 60 }],
  },
  {
    name: 'released-at-once',
    sentence: 'The numbers of a context that is released are forgotten at once, though a successor sends on it again.',
    edits: [edit(INBOX, 'tap.options.answersUnknown !== true && tap.options.covers(ctx)', 'ctx < 0')],
    found: [{ profile: 'log', within: 60 }],
  },
  {
    name: 'released-and-saved',
    sentence: 'The numbers of contexts that are released are in a save, though the others forget them when it is committed.',
    edits: [edit(SUCCESSION, 'if (!this.isCovered(ctx) || gone.has(ctx)) continue;', 'if (!this.isCovered(ctx)) continue;')],
    found: [{ profile: 'log', within: 60 }],
  },
  {
    name: 'logged-by-reference',
    sentence: 'The log keeps the buffer of the user instead of a copy.',
    edits: [
      edit(
        LOG,
        '    if (sync) destination.kept.set(entries.end - 1, new Entry(entries, entries.end - 1, this.slabs));\n',
        '    destination.kept.set(entries.end - 1, Object.assign(new Entry(entries, entries.end - 1, this.slabs), { payload: buffer }));\n',
      ),
    ],
    found: [{ profile: 'log', within: 60 }],
  },
  {
    name: 'slab-used-again-too-early',
    sentence: 'The memory of a slab is used again once it is full, though its messages are in the log.',
    edits: [
      edit(
        SLABS,
        '    slab.isOpen = false;\n    if (slab.users === 0) this.settle(slab);\n',
        '    slab.isOpen = false;\n    this.settle(slab);\n',
      ),
    ],
    found: [{ profile: 'log', within: 60 }],
  },
  {
    name: 'log-unbounded',
    sentence: 'The log takes as much memory as it is given.',
    edits: [
      edit(LOG, 'this.options.bytesMax - this.usedBytes - pieceBytes;', 'this.options.bytesMax * 1e9 - this.usedBytes - pieceBytes;'),
    ],
    found: [{ profile: 'log', within: 60 }],
  },
  {
    name: 'overtakes-what-waits',
    sentence: 'A message for which there is room in the log goes before those that wait for room.',
    edits: [
      edit(TAP, 'if (this.waiting.size === 0 && this.give(send, false)) return request;', 'if (this.give(send, false)) return request;'),
    ],
    found: [{ profile: 'log', from: 162, within: 202 }],
  },
  {
    name: 'leaves-before-it-is-safe',
    sentence: 'A message leaves before the outcomes are safe on which it may depend.',
    edits: [edit(RECORDER, 'return this.isFull ? this.end : 0;', 'return this.isFull ? Math.min(0, this.end) : 0;')],
    found: [{ profile: 'log', from: 165, within: 205 }],
  },
  {
    name: 'short-past-the-gate',
    sentence: 'A short message leaves at once, though outcomes are not safe on which it may depend.',
    edits: [edit(TAP, 'this.gated.size > 0 || this.isGated || this.difference', 'this.difference')],
    found: [{ profile: 'log', from: 165, within: 205 }],
  },
  {
    name: 'list-not-obeyed',
    sentence: 'A receive from anybody takes what comes first, though it is listed what it took.',
    edits: [
      edit(
        RECORDER,
        'return { receive, source: this.matches.get(receive)?.source };',
        'this.matches.delete(receive);\n    return { receive, source: undefined };',
      ),
    ],
    found: [{ profile: 'log', within: 60 }],
  },
  {
    name: 'looks-not-obeyed',
    sentence: 'Calls that look find what is there now, though it is listed what they found.',
    edits: [
      edit(
        RECORDER,
        'if (record === undefined || !this.isFull) return undefined;',
        'if (record === undefined || this.isFull) return undefined;',
      ),
    ],
    found: [{ profile: 'log', within: 60 }],
  },
  {
    name: 'list-lost-with-its-holder',
    sentence: 'When its holder dies, a process gives what it records from then on to the next one, and not what it had recorded.',
    edits: [
      edit(
        RECORDER,
        '    this.sent = this.base;\n    this.confirmed = this.base;\n    this.isUnderWay = false;',
        '    this.sent = this.end;\n    this.confirmed = this.end;\n    this.isUnderWay = false;',
      ),
      edit(HOLDINGS, 'held = { epoch, base, records: [], isWhole: false };', 'held = { epoch, base: from, records: [], isWhole: false };'),
      edit(HOLDINGS, 'assert(from === base,', 'assert(from >= base,'),
    ],
    found: [{ profile: 'log', within: 60 }],
  },
  {
    name: 'list-trimmed-at-the-cut',
    sentence: 'The list is trimmed when a save is cut, before it is committed.',
    edits: [
      edit(
        RECORDER,
        'awaits: this.awaits };\n    return this.pending;',
        'awaits: this.awaits };\n    const made = this.pending;\n    this.commit();\n    return made;',
      ),
    ],
    found: [{ profile: 'log', from: 90, within: 130 }],
  },
  {
    name: 'gated-past-the-log',
    sentence: 'The log lets go of messages that wait for their leave.',
    edits: [edit(TAP, '      this.options.log.hold(logged);\n', '')],
    found: [{ profile: 'log', within: 60 }],
  },
];
