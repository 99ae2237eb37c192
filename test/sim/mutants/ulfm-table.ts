// The planted mistakes in failures, revocation and agreement (src/ulfm): part of table.ts. The random runs of the profile `ulfm` find them.
// Where the search does not begin at seed 0, the first seed that fails is a little after `from`.
import type { Edit, Planted } from './table.ts';

const AGREEMENT = 'src/ulfm/agreement.ts';
const COMMUNICATOR = 'src/ulfm/communicator.ts';
const FACE = 'src/ulfm/ulfm.ts';
const KNOWLEDGE = 'src/ulfm/knowledge.ts';
const REVOKE = 'src/ulfm/revoke.ts';
const VALUES = 'src/ulfm/values.ts';

const edit = (file: string, find: string, replace: string): Edit => ({ file, find, replace });

export const PLANTED_ULFM: readonly Planted[] = [
  {
    name: 'decide-without-acks',
    sentence: 'A leader decides as soon as it has proposed, without waiting for an ACK.',
    edits: [
      edit(
        AGREEMENT,
        "if (this.state === 'PROPOSING' && this.missing(this.needed(), this.acks).length === 0)",
        "if (this.state === 'PROPOSING')",
      ),
    ],
    found: [{ profile: 'ulfm', within: 2000 }],
  },
  {
    name: 'locks-ignored',
    sentence: 'A new leader makes a value of its own whatever is locked.',
    edits: [edit(AGREEMENT, 'const held = led.lock;', 'const held = undefined as Lock | undefined;')],
    found: [{ profile: 'ulfm', within: 2000 }],
  },
  {
    name: 'decided-stays-silent',
    sentence: 'A member that has decided says nothing to a new leader, nor to those that ask.',
    edits: [
      edit(AGREEMENT, 'if (hasChanged) this.tell([leader]);', ''),
      edit(AGREEMENT, "if (this.state === 'DECIDED') return this.answer(gathered.covers);", "if (this.state === 'DECIDED') return;"),
    ],
    found: [{ profile: 'ulfm', within: 2000 }],
  },
  {
    name: 'flood-not-passed-on',
    sentence: 'A process that hears of a death tells nobody.',
    edits: [edit(FACE, 'this.post(this.knowledge.neighbours, { type: SERVICE.FAILED,', 'this.post([], { type: SERVICE.FAILED,')],
    found: [{ profile: 'ulfm', within: 2000 }],
  },
  {
    name: 'tree-not-left',
    sentence: 'The tree stays in use when a node of it is dead.',
    edits: [edit(AGREEMENT, 'else this.passTreeBy();', '')],
    found: [{ profile: 'ulfm', within: 2000 }],
  },
  {
    name: 'old-view-accepted',
    sentence: 'A PROPOSE of a leader that is known to be gone is locked.',
    edits: [
      edit(
        AGREEMENT,
        "if (view !== this.leader || view === this.roll.self || (this.state !== 'STATED' && this.state !== 'LOCKED')) {",
        "if (view === this.roll.self || (this.state !== 'STATED' && this.state !== 'LOCKED')) {",
      ),
      edit(
        FACE,
        'if (this.ownDeath !== undefined || this.knowledge.isGone(source)) return;\n    this.take(source, bytes);\n    this.settle();',
        'if (this.ownDeath !== undefined) return;\n    this.take(source, bytes);\n    this.settle();',
      ),
    ],
    found: [{ profile: 'ulfm', within: 2000 }],
  },
  {
    name: 'failed-not-united',
    sentence: 'The failed set of a value is what the leader knows alone.',
    edits: [edit(VALUES, 'this.dead.addAll(other.dead);', '')],
    found: [{ profile: 'ulfm', within: 2000 }],
  },
  {
    name: 'acknowledged-not-intersected',
    sentence: 'What one member has acknowledged counts as acknowledged by all.',
    edits: [edit(VALUES, 'this.acked.keepOnly(other.acked);', '')],
    found: [{ profile: 'ulfm', within: 2000 }],
  },
  {
    name: 'flag-of-the-leader',
    sentence: 'The flags that come up the tree are not put together.',
    edits: [edit(VALUES, 'this.flag = (this.flag & other.flag) >>> 0;', '')],
    found: [{ profile: 'ulfm', within: 2000 }],
  },
  {
    name: 'first-leader-for-good',
    sentence: 'The lowest rank leads, whether it lives or not.',
    edits: [
      edit(
        AGREEMENT,
        'while (rank !== roll.self && (roll.gone.has(rank) || base.has(rank))) rank++;',
        'while (rank !== roll.self && base.has(rank)) rank++;',
      ),
    ],
    found: [{ profile: 'ulfm', within: 2000 }],
  },
  {
    name: 'decision-forgotten-early',
    sentence: 'A decision is forgotten as soon as it is there, before everybody has it.',
    edits: [edit(COMMUNICATOR, 'this.forgetBelow(series, agreement.q);', 'this.forgetBelow(series, agreement.q + 1);')],
    found: [{ profile: 'ulfm', within: 2000 }],
  },
  {
    name: 'revoke-not-forwarded',
    sentence: 'A member that hears of a revocation tells nobody.',
    edits: [
      edit(
        FACE,
        '    this.revokeHere(communicator);\n    // A successor',
        '    communicator.revocation.revoke([], []);\n    this.revocations.push(communicator.id);\n    // A successor',
      ),
    ],
    found: [{ profile: 'ulfm', within: 2000 }],
  },
  {
    name: 'revoke-ring-not-mended',
    sentence: 'When a member dies, its neighbours in the ring are not told of a revocation that it would have passed on.',
    edits: [edit(REVOKE, 'if (!this.isRevoked || living.length < 2) return [];', 'return [];')],
    found: [{ profile: 'ulfm', within: 2000 }],
  },
  {
    name: 'acks-of-the-old-leader',
    sentence: 'ACKs for a leader that is gone count for the next one.',
    edits: [
      edit(
        AGREEMENT,
        '    this.isDirect = true;\n    this.clearRelayed();\n    this.acks.clear();',
        '    this.isDirect = true;\n    this.clearRelayed();',
      ),
      edit(
        AGREEMENT,
        "if (view !== this.leader || this.state !== (view === this.roll.self ? 'PROPOSING' : 'LOCKED')) return this.host.ignore(message);\n    this.acks",
        'this.acks',
      ),
    ],
    found: [{ profile: 'ulfm', within: 2000 }],
  },
  {
    name: 'told-before-it-leads',
    sentence: 'Who is told the decision before it knows that it leads says nothing to those whose STATE it has.',
    edits: [edit(AGREEMENT, 'this.answer(this.led.covers);', '')],
    found: [{ profile: 'ulfm', within: 2000 }],
  },
  {
    name: 'old-generation-counts',
    sentence: 'In a new generation, what was gathered in the old one counts.',
    edits: [edit(AGREEMENT, '    this.roll = roll;\n    this.led.clear();', '    this.roll = roll;')],
    found: [{ profile: 'ulfm', within: 2000 }],
  },
  {
    name: 'dead-are-waited-for',
    sentence: 'Whoever is dead is waited for like the living.',
    edits: [edit(KNOWLEDGE, 'return this.failures.has(number) || this.departed.has(number);', 'return this.departed.has(number);')],
    found: [{ profile: 'ulfm', within: 2000 }],
  },
];
