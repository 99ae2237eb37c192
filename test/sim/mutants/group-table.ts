// The planted mistakes in groups that save by themselves and go back together (src/ft/groups, and what src/pml does for them): part of table.ts. The
// random runs of the profile `group` find them.
import { edit } from './edit.ts';
import type { Planted } from './table.ts';

const GROUPS = 'src/ft/groups/groups.ts';
const LIVES = 'src/ft/groups/group-lives.ts';
const MEETING = 'src/ft/groups/group-meeting.ts';
const SAVES = 'src/ft/groups/group-saves.ts';
const SUCCESSION = 'src/pml/succession.ts';

export const PLANTED_GROUPS: readonly Planted[] = [
  {
    name: 'again-before-all-has-come',
    sentence: 'A rank that goes back with its group begins again while messages of its earlier life are on their way to it.',
    edits: [edit(MEETING, 'while (!lives.hasTaken(streams)) yield', 'while (lives.life < 0 && !lives.hasTaken(streams)) yield')],
    found: [{ profile: 'group', within: 60 }],
  },
  {
    name: 'sent-in-two-lives',
    sentence: 'A rank that goes back sends again what its earlier life has sent, and what is still on its way.',
    edits: [edit(LIVES, 'return this.sentOnce.get(rank);', 'return rank < 0 ? this.sentOnce.get(rank) : undefined;')],
    found: [{ profile: 'group', within: 60 }],
  },
  {
    name: 'goes-on-sending',
    sentence: 'Ranks of other groups go on sending to one that goes back and lives.',
    edits: [
      edit(
        MEETING,
        'for (const one of stopping) host.streams?.stopTo(one);',
        'for (const one of stopping) if (one < 0) host.streams?.stopTo(one);',
      ),
    ],
    found: [{ profile: 'group', within: 60 }],
  },
  {
    name: 'mates-awaited',
    sentence: 'Those that go back together wait for what each of them has, though nobody tells them.',
    edits: [
      edit(
        SUCCESSION,
        'if (peer.failure === undefined && this.tap.within.has(rank)) continue;',
        'if (peer.failure !== undefined && this.tap.within.has(rank)) continue;',
      ),
    ],
    found: [{ profile: 'group', within: 60 }],
  },
  {
    name: 'save-of-some',
    sentence: 'A group goes back to a save of which one image is somewhere, and not all.',
    edits: [edit(GROUPS, 'numbers.find((k) => k >= least && members.every(', 'numbers.find((k) => k >= least && members.some(')],
    found: [{ profile: 'group', within: 60 }],
  },
  {
    name: 'others-lose-their-save',
    sentence: 'Groups that do not go back forget the save that they have committed.',
    edits: [edit(GROUPS, '      lines.push(least);\n      steps', '      lines.push(Math.min(-1, least));\n      steps')],
    found: [{ profile: 'group', within: 60 }],
  },
  {
    name: 'committed-before-it-is-held',
    sentence: 'A rank says that its image is where it must be when it has sent it.',
    edits: [
      edit(SAVES, 'if (!this.isSpreading || this.awaited.size > 0) return;', 'if (!this.isSpreading) return;\n    this.awaited.clear();'),
    ],
    found: [{ profile: 'group', within: 60 }],
  },
  {
    name: 'trimmed-before-it-is-committed',
    sentence: 'Other groups are told of a save when it is spread, and not when it is committed.',
    edits: [
      edit(SAVES, '    this.isSpreading = true;\n    for', '    this.isSpreading = true;\n    this.tellCommitted(pending);\n    for'),
    ],
    found: [{ profile: 'group', within: 60 }],
  },
  {
    name: 'trimmed-with-its-data',
    sentence: 'A save that has only the place of a message says that its data are not asked for any more.',
    edits: [
      edit(
        SAVES,
        'messageBytes !== undefined && serialDiff(seq, low) < 0) low = seq;',
        'messageBytes !== undefined && serialDiff(seq, low) < 0) low = Math.max(seq, low);',
      ),
    ],
    found: [{ profile: 'group', within: 60 }],
  },
  {
    name: 'interrupted-and-kept',
    sentence: 'What a rank has copied for a save that a death ended stays, and is never given back.',
    edits: [edit(SAVES, '      } else this.drop(pending);\n', '      }\n')],
    found: [{ profile: 'group', within: 60 }],
  },
];
