// Seeds that once failed, each with its story. Every run plays them. A seed keeps its meaning only while swarm.ts and stress.ts draw the
// same: the scenario named with it keeps the story permanently.
import type { Profile } from '../../tools/sim/campaign.ts';

export const ONCE_FAILED: readonly { profile: Profile; seed: number; story: string }[] = [
  {
    profile: 'swarm',
    seed: 55,
    story: 'An ACK counted PUT windows of rails that were lost before it arrived, and the sender waited for them.',
  },
  { profile: 'swarm', seed: 50, story: 'A rail was dialled twice when an epoch ended beside a connection attempt.' },
  {
    profile: 'swarm',
    seed: 6134,
    story: 'A rail that closed because a newer epoch took over was taken for a good end after BYE; the BYE itself had been lost.',
  },
  {
    profile: 'death',
    seed: 6625,
    story: 'The oracle took a peer timeout of 300 ms for one that came too soon, by 6e-14 ms: two ways to add up the same turns.',
  },
  {
    profile: 'stress',
    seed: 24391,
    story: 'A process that was paused when the job ended was never told to finalize, and the other one waited for its BYE.',
  },
  {
    profile: 'stress',
    seed: 45855,
    story: 'A strike made one side of each rail blind after that rail was healed for the end of the job, and nothing ended it.',
  },
  {
    profile: 'storm',
    seed: 26103,
    story:
      'The oracle blamed a get that came late to closed memory, over a rail that its reader had ended and the owner of the memory had not.',
  },
  {
    profile: 'save',
    seed: 4471,
    story:
      'A second death came before a successor held copies again: no save was left, and the formula was blamed for saying that its copies were there.',
  },
  {
    profile: 'save',
    seed: 2129,
    story:
      'The quiet phase lasted 50 ms, and a rail that came back brought copies to ranks that had finalized: now it lasts until all is delivered.',
  },
  {
    profile: 'save',
    seed: 315680,
    story:
      'All who knew of a committed save had died, and the job began anew: the oracle took the first save of that beginning for the old one.',
  },
  {
    profile: 'save',
    seed: 433091,
    story: 'All members had died, and the run was judged while the last words of one of them were on their way and called the standbys in.',
  },
  {
    profile: 'ulfm',
    seed: 308226,
    story: 'The oracle blamed a leader for a standby that joined while its proposal was on its way for 56 ms.',
  },
  {
    profile: 'ulfm',
    seed: 2885,
    story: 'A process that was declared dead, and did not know it, was to tell a successor of which the server had not told it any more.',
  },
  {
    profile: 'ulfm',
    seed: 11_049,
    story:
      'Two processes left in the quiet phase, while a third one was dead of which only a fourth had heard: it told nobody that had left.',
  },
  {
    profile: 'ulfm',
    seed: 17_905,
    story: 'The run was judged while a link, the only one between two processes, still went down and came back.',
  },
  {
    profile: 'ulfm',
    seed: 50295,
    story: 'A process had joined, and nobody had heard of it when a death went round; the server, which would have told it, was gone.',
  },
  {
    profile: 'ulfm',
    seed: 82371,
    story: 'The oracle took those that another series of agreements would have found standing by for those that replace() could have had.',
  },
  {
    profile: 'ulfm',
    seed: 136531,
    story: 'A process was declared dead while it left, never heard of it, and waited without end for those that had left.',
  },
  {
    profile: 'ulfm',
    seed: 144063,
    story: 'A process was paused when it was given a communicator, and dropped what had come for it before it had opened it.',
  },
  {
    profile: 'ulfm',
    seed: 308452,
    story: 'A process died in the middle of a long service message; the short ones behind it were kept until the end of the job.',
  },
  {
    profile: 'log',
    seed: 2,
    story:
      'A process that had said that its log was whole gave it up before it heard who succeeds the dead (seed 534, before programs made communicators).',
  },
  {
    profile: 'log',
    seed: 30,
    story: 'All went back, and what a successor still sent for a hole was dropped as a copy: its credit never came back.',
  },
  {
    profile: 'log',
    seed: 20134,
    story: 'A process that had gone back waited for the answer to a long message for longer than the 50 ms that the oracle gave it.',
  },
  {
    profile: 'log',
    seed: 2020,
    story: 'The run ended before a process whose peer had failed heard that all go back: it still held a message to itself.',
  },
  {
    profile: 'log',
    seed: 40,
    story:
      'A save had the numbers of a communicator that was freed; the others forgot them with the commit, and the successor was never caught up.',
  },
  {
    profile: 'log',
    seed: 592,
    story: 'The oracle blamed a synchronous send that ended because its receiver had gone back with all the others.',
  },
  {
    profile: 'log',
    seed: 9100,
    story: 'All had ended while a rail was down: what it brought when it came back found nobody to receive it.',
  },
  {
    profile: 'log',
    seed: 13485,
    story: 'Two successions had been decided, and a process that had heard of the first gave up the log that the second one needed.',
  },
  {
    profile: 'log',
    seed: 67148,
    story: 'A successor that came after the next succession was decided gave up the log that this one needed.',
  },
  {
    profile: 'log',
    seed: 17352,
    story: 'All went back, and a message of a process that had died, which a probe had taken, was held to the end.',
  },
  {
    profile: 'log',
    seed: 17914,
    story: 'All went back, and who had sent a message that a probe had taken waited for its answer.',
  },
  {
    profile: 'log',
    seed: 169893,
    story:
      'The second copy of a short message came when its communicator had been freed and its numbers were forgotten, and was held to the end.',
  },
  {
    profile: 'replica',
    seed: 2445,
    story: 'The lead took a message that had come before its receive was posted, and did not wake the engine: the burst waited for ever.',
  },
  {
    profile: 'replica',
    seed: 16130,
    story:
      'The shadow posted the receive of long bytes, and did not wake the engine: their sender was never told, and the burst never ended.',
  },
  {
    profile: 'replica',
    seed: 1348,
    story: 'The last words of a shadow that had died came when nobody received them any more, and were kept.',
  },
  {
    profile: 'replica',
    seed: 1741,
    story:
      'What a shadow of two said after it had been told to leave was dropped as if it had come before: its sender never had that credit back.',
  },
  {
    profile: 'replica',
    seed: 20360,
    story: 'The last shadow died while it was asked for a message that differed: its lead went on to wait for the answer.',
  },
  {
    profile: 'replica',
    seed: 2253,
    story: 'The lead waited until its last words to a shadow had left, which had come to its end, and took nothing any more.',
  },
  {
    profile: 'log',
    seed: 20020,
    story:
      'A synchronous send went on to a successor, which died: its request still named the one that had died first, and could not be given up.',
  },
  {
    profile: 'group',
    seed: 131,
    story: 'A rank came to a save that a death in another group had interrupted, when it was about to learn that its group was behind it.',
  },
  {
    profile: 'group',
    seed: 121,
    story: 'Images of two tries of a save, of which the first had been abandoned, passed for one save, since both had the same number.',
  },
  {
    profile: 'group',
    seed: 5031,
    story: 'The memory of an image was never given back that had come when another process died, before anything had begun with it.',
  },
  {
    profile: 'group',
    seed: 1716,
    story: 'An image that was sent again after a death came when a newer one was committed, and was kept beside two others.',
  },
  {
    profile: 'group',
    seed: 20_330,
    story: 'A member that had not begun again told one that had what it had sent to its life before: that waited for it for good.',
  },
  {
    profile: 'group',
    seed: 20_900,
    story:
      'The oracle blamed a synchronous send between two members whose groups both had lost a rank: one had ended its run, and answered.',
  },
  {
    profile: 'group',
    seed: 23_774,
    story: 'A successor posted the receive of its image, and did not wake the engine: the member that had it was never told.',
  },
  {
    profile: 'group',
    seed: 2417,
    story:
      'A member did not come to the end of a recovery in which another one began again, and took what it had sent to the life before for sent.',
  },
  {
    profile: 'group',
    seed: 3462,
    story: 'A group went back to an image whose log had been given up before the save, and another one asked for what it had lacked since.',
  },
  {
    profile: 'group',
    seed: 51,
    story: 'The oracle blamed credit that was given twice for a message which came once more after its receiver had begun again.',
  },
];
