// The planted mistakes in groups that save by themselves and go back together (src/ft/groups): part of table.ts. The
// random runs of the profile `group` find them.
import { edit } from './edit.ts';
import type { Planted } from './table.ts';

const GROUPS = 'src/ft/groups/groups.ts';
const MEETING = 'src/ft/groups/group-meeting.ts';
const SAVES = 'src/ft/groups/group-saves.ts';
const STEPS = 'src/ft/groups/group-save-steps.ts';

export const PLANTED_GROUPS: readonly Planted[] = [
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
    name: 'save-of-some',
    sentence: 'A group goes back to a save of which one image is somewhere, and not all.',
    edits: [edit(GROUPS, 'numbers.find((k) => k >= least && members.every(', 'numbers.find((k) => k >= least && members.some(')],
    found: [{ profile: 'group', within: 60 }],
  },
  {
    name: 'interrupted-and-kept',
    sentence: 'What a rank has copied for a save that a death ended stays, and is never given back.',
    edits: [edit(SAVES, '      } else this.drop(pending);\n', '      }\n')],
    found: [{ profile: 'group', within: 60 }],
  },
  {
    name: 'committed-before-it-is-held',
    sentence: 'A rank says that its image is where it must be when it has sent it.',
    edits: [
      edit(SAVES, 'if (!this.isSpreading || this.awaited.size > 0) return;', 'if (!this.isSpreading) return;\n    this.awaited.clear();'),
    ],
    found: [{ profile: 'group', within: 10 }],
  },
  {
    name: 'number-of-a-try-used-again',
    sentence: 'A save has the number of one before it that was abandoned, of which copies are left.',
    edits: [edit(SAVES, 'return Math.max(this.committed?.k ?? -1, this.lastK) + 1;', 'return (this.committed?.k ?? -1) + 1;')],
    found: [{ profile: 'group', from: 544, within: 548 }],
  },
  {
    name: 'comes-to-a-passed-call',
    sentence: 'A rank that waits until saves are open comes to the call in which it was, though its group is behind it.',
    edits: [edit(STEPS, '      if (!host.isAhead) break;\n', '')],
    found: [{ profile: 'group', from: 131, within: 135 }],
  },
  {
    name: 'sent-to-a-life-that-is-over',
    sentence:
      'What was sent to an earlier life of a member is not sent to the next one, which had begun in a recovery that was interrupted here.',
    edits: [edit(MEETING, '  lives.met((one) => views[one].life);\n', '')],
    found: [{ profile: 'group', from: 2415, within: 2418 }],
  },
  {
    name: 'torn-log-taken-from-an-image',
    sentence: 'A group goes back to an image whose log had been given up before the save, whatever others ask for.',
    edits: [edit(MEETING, 'if (short >= 0)', 'if (short >= places.length)')],
    found: [{ profile: 'group', from: 3460, within: 3463 }],
  },
  {
    name: 'second-copies-come-later',
    sentence: 'A rank begins again when all has come to it, though a failover may still bring others a second copy of what it has sent.',
    edits: [edit(MEETING, ' && stopping.every((one) => streams.isDrained(one))', '')],
    found: [{ profile: 'group', within: 60 }],
  },
];
