// The planted mistakes in saves and recovery (src/ft/checkpoint): part of table.ts. The random runs of the profile `save` find them.
import { edit } from './edit.ts';
import type { Planted } from './table.ts';

const CORE = 'src/ft/checkpoint/save-core.ts';
const SLOTS = 'src/ft/checkpoint/slots.ts';
const RECOVERY = 'src/ft/checkpoint/recovery-plan.ts';
const GROUPING = 'src/ft/checkpoint/grouping.ts';

/** The loop with the assertion that would stop the mistake at once is taken away, too: the oracle finds it. */
const WITHOUT_COPIES = edit(CORE, 'for (const owner of this.placement.owners(this.rank, name.k))', 'for (const owner of [] as number[])');

export const PLANTED_SAVES: readonly Planted[] = [
  {
    name: 'commit-on-own-word',
    sentence: 'A rank goes back to a save for which it has voted, whatever the others have decided.',
    edits: [edit(CORE, 'if ((flag & VOTE.COMMIT) !== 0) this.commit(slot);', 'if ((this.vote & VOTE.COMMIT) !== 0) this.commit(slot);')],
    found: [{ profile: 'save', within: 400 }],
  },
  {
    name: 'one-slot-too-few',
    sentence: 'There are as many slots as saves stay readable, and none for the save that is being made.',
    edits: [edit(SLOTS, 'Array.from({ length: depth + 1 }', 'Array.from({ length: depth }')],
    found: [{ profile: 'save', within: 400 }],
  },
  {
    name: 'vote-without-held-copy',
    sentence: 'A rank votes for a save as soon as its own image is whole, without the copies that it is to hold.',
    edits: [edit(CORE, 'if (this.missing.length === 0) this.castVote(VOTE.COMMIT);', 'this.castVote(VOTE.COMMIT);'), WITHOUT_COPIES],
    found: [{ profile: 'save', within: 400 }],
  },
  {
    name: 'no-vote-of-the-idle',
    sentence: 'A rank that knows of a death votes no only when its program comes to a save.',
    edits: [
      edit(
        CORE,
        "if (this.dead.size > 0 && this.state !== 'VOTING') this.castVote(0);",
        "if (this.dead.size > 0 && this.state !== 'VOTING' && !this.isIdle) this.castVote(0);",
      ),
    ],
    found: [{ profile: 'save', within: 400 }],
  },
  {
    name: 'inventory-of-all-slots',
    sentence: 'A save that is not committed is in the inventory, too.',
    edits: [
      edit(
        SLOTS,
        '  free(slot: Slot): void {\n    const before = slot.pieces;',
        "  free(slot: Slot): void {\n    if (slot.state === 'WRITING' && slot.own !== undefined) {\n      slot.state = 'COMMITTED';\n      this.order.push(slot);\n      return;\n    }\n    const before = slot.pieces;",
      ),
    ],
    found: [{ profile: 'save', within: 400 }],
  },
  {
    name: 'line-without-images',
    sentence: 'The newest save is the line, whether all images of it are somewhere or not.',
    edits: [edit(RECOVERY, 'if (giver === undefined) return undefined;', 'if (giver === undefined) continue;')],
    found: [{ profile: 'save', within: 400 }],
  },
  {
    name: 'everybody-holds-copies',
    sentence: 'After a recovery every member counts as one that still has the copies that it is to hold, a successor, too.',
    edits: [edit(RECOVERY, 'return (holder, owner) => held[holder].has(owner);', 'return () => held.length > 0;')],
    found: [{ profile: 'save', within: 400 }],
  },
  {
    name: 'oldest-slot-overwritten',
    sentence: 'A save that is being made takes the slot of the oldest committed one before it is committed itself.',
    edits: [
      edit(
        SLOTS,
        "const slot = this.slots.find(({ state }) => state === 'FREE');",
        "if (this.order.length === this.depth && this.order.length > 1) this.free(this.order[0]);\n    const slot = this.slots.find(({ state }) => state === 'FREE');",
      ),
    ],
    found: [{ profile: 'save', within: 400 }],
  },
  {
    name: 'recovery-out-of-order',
    sentence: 'A rank that knows of a death goes back at once and does not wait for what all decide about the save under way.',
    edits: [
      edit(
        CORE,
        '    this.dead.add(rank);\n    this.voteNo();',
        "    this.dead.add(rank);\n    if (this.state === 'VOTING' && this.vote === VOTE.COMMIT && this.slot !== undefined) {\n      this.abandon(this.slot);\n      this.slot = undefined;\n      this.move('RECOVERING');\n      this.actions.push({ kind: 'recover', failed: [rank] });\n      return;\n    }\n    this.voteNo();",
      ),
      edit(CORE, "assert(this.state === 'VOTING',", "if (this.state !== 'VOTING') return;\n    assert(true,"),
    ],
    found: [{ profile: 'save', within: 400 }],
  },
  {
    name: 'ghost-of-a-save',
    sentence: 'A copy that was on its way when the epoch ended is taken for one of the same number in the next epoch.',
    edits: [edit(CORE, 'isTaking && isSameSave(name, slot.name)', 'isTaking && name.k === slot.name.k')],
    found: [{ profile: 'save', within: 400 }],
  },
  {
    name: 'attempt-not-named',
    sentence: 'A copy of a save that was abandoned is taken for one of the next, which has its number.',
    edits: [edit(CORE, ' && name.attempt === this.attempt', '')],
    found: [{ profile: 'save', within: 400 }],
  },
  {
    name: 'not-spread-again',
    sentence: 'What was restored is not spread again: after a recovery the successors hold no copies, and nobody holds theirs.',
    edits: [
      edit(
        CORE,
        '    this.slot = slot;\n    this.spread(own, (holder) => has(holder, this.rank));',
        "    this.slot = slot;\n    slot.own = own;\n    this.move('SPREADING');\n    this.castVote(VOTE.COMMIT);",
      ),
      WITHOUT_COPIES,
    ],
    found: [{ profile: 'save', within: 400 }],
  },
  {
    name: 'left-out-part-forgotten',
    sentence: 'Where fewer ranks go on, nobody takes over the parts of those that were left out.',
    edits: [
      edit(
        GROUPING,
        '  for (const entry of entries) {\n',
        '  for (const entry of entries) {\n    if (now[entry.owner] === undefined) continue;\n',
      ),
    ],
    found: [{ profile: 'save', within: 400 }],
  },
  {
    name: 'saves-of-before-given-up-early',
    sentence: 'Fewer ranks give up the saves of before when they begin with the line, and not when all have committed it.',
    edits: [
      edit(
        CORE,
        '    if (line !== undefined && own !== undefined) this.slots.adopt(line, own);\n  }',
        '    if (line !== undefined && own !== undefined) this.slots.adopt(line, own);\n    this.dropFormer();\n  }',
      ),
    ],
    found: [{ profile: 'save', within: 2000 }],
  },
  {
    name: 'rank-of-before-forgotten',
    sentence:
      'A rank that meets the others again, before fewer have committed what they go on with, tells them of its saves by its new rank.',
    edits: [edit(CORE, 'Object.assign(this, former);', 'Object.assign(this, former, { rank: this.rank });')],
    found: [{ profile: 'save', within: 2000 }],
  },
];
