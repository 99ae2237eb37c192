// A recovery in place by groups as each member goes through it, once all are together on a new communicator: who goes back, what is taken before it
// does, images, the numbers to begin with. How words and images travel, and what begins, is the driver's (group-in-place.ts). Pure.
import type { FlowNumbers } from '../../pml/succession.ts';
import { hasBelow, type Lacks } from './group-lacks.ts';
import type { GroupLives, LivingStreams } from './group-lives.ts';
import type { GroupNumbers, GroupSaves, GroupSlot } from './group-saves.ts';
import { type GroupPlan, type Groups, type GroupView, planGroups } from './groups.ts';

/** Steps of a member, each taken when what it waits for is so. */
export type MeetingSteps<W, T> = Generator<W, T, void>;

/** What every member tells the others. */
export interface GroupMember extends GroupView {
  readonly groups: Groups;
  /** So often has this process begun again. */
  readonly life: number;
  /** Nothing is missing in its log. */
  readonly isWhole: boolean;
  /** Of one that runs: how many have a place. */
  readonly places: number;
}

export interface MeetingStreams extends LivingStreams {
  /** That member lives, and goes back: nothing leaves to it until it has said what it has. */
  stopTo(rank: number): void;
  /** That member has what left to it, and no second copy of it can come to it any more. */
  isDrained(rank: number): boolean;
  /** All that it was sent from there below these numbers is here, whether that member lives or not. */
  has(rank: number, below: FlowNumbers): boolean;
}

/** What the driver does for it. `W`: what can be waited for. */
export interface GroupMeetingHost<W, V extends GroupMember> {
  readonly rank: number;
  /** The program of this rank runs. */
  readonly isRunning: boolean;
  /** Undefined before a successor has begun. */
  readonly streams: MeetingStreams | undefined;
  readonly group: GroupSaves;
  readonly lives: GroupLives;
  /** A group may begin from the beginning. */
  readonly mayRestart: boolean;
  /** Each tells all what it has. The log is whole from then on until all have what they go on with. */
  exchange(): MeetingSteps<W, readonly V[]>;
  /** The ranks of each group are known to this process, too. */
  form(groups: Groups): void;
  /** Messages of saves are taken from now on. */
  listen(): void;
  /** This run of the program is over: its calls end. */
  endRun(): void;
  /** Members that go back are told what is on its way to them; `from`: those that tell this one. */
  tellSent(told: ReadonlyMap<number, FlowNumbers>, from: readonly number[]): MeetingSteps<W, readonly (readonly [number, FlowNumbers])[]>;
  /** The end of the next turn, in which that may have come to be so. */
  nextTurn(streams: MeetingStreams, isSo: () => boolean): W;
  /** Images go to the new processes, and this rank reads its own, if it goes back. False when it could not. */
  fetch(plan: GroupPlan, views: readonly V[]): MeetingSteps<W, boolean>;
  /** Each tells all a number. */
  tell(word: number): MeetingSteps<W, readonly number[]>;
  /** Of the image that this rank goes back to, once it is here; undefined: it goes on, or back to the beginning. */
  image(): { readonly lacks: Lacks; readonly flows: GroupNumbers['flows'] } | undefined;
  /** This rank begins from its image of the save that its group goes back to: as a successor of itself, or of one that is dead. */
  beginFrom(line: number, wasRunning: boolean): GroupSlot | undefined;
  /** The dead have successors, and the program of this rank goes on, behind the calls that somebody of its group is behind. */
  goOn(isMate: (rank: number) => boolean, views: readonly V[]): void;
  /** What the recovery has come to is noted. */
  settled(plan: GroupPlan, views: readonly V[]): void;
  /** Whoever waits for the word of a member gets it. */
  synchronise(): MeetingSteps<W, void>;
  /** Saves may go on. */
  open(lacks: (holder: number) => boolean): void;
  /** All go back; why, or undefined where it is known to all. */
  goBack(views: readonly V[], why: string | undefined): 'back';
}

/** The same at all members. */
function whyNot(views: readonly GroupMember[], { failing, lines, lost }: GroupPlan, mayRestart: boolean): string | undefined {
  if (views.some(({ mode }) => mode === 'back')) return 'a rank has gone back already';
  const { places, groups } = views.find(({ mode }) => mode === 'runs' || mode === 'again') as GroupMember;
  if (places !== views.length) return `${places - views.length} of ${places} ranks have no successor`;
  const torn = views.findIndex(({ mode, isWhole }, rank) => mode === 'runs' && !failing.has(groups[rank]) && !isWhole);
  if (torn >= 0) return `the log of rank ${torn} does not reach back to the last saves of other groups (ft_log_bytes_max)`;
  if (lost !== undefined) return `not all images of the last save of group ${lost} are left`;
  if (!mayRestart && [...failing].some((group) => lines[group] < 0))
    return 'no save was committed, and the program must not begin from the beginning (whenNoSave)';
  return undefined;
}

/** How a rank comes out of fetching. */
const FETCHED = { WRONG: 0, WHOLE: 1, LACKING: 2 } as const;

/**
 * The logs of some images were given up before their saves: whatever was sent before those, and has not come, is nowhere. Returns the first rank
 * that would ask for it, or -1.
 */
function* shortOf<W, V extends GroupMember>(
  host: GroupMeetingHost<W, V>,
  places: readonly number[],
  lacking: readonly number[],
  isFailing: boolean,
): MeetingSteps<W, number> {
  const { rank, streams } = host;
  const { lacks = [], flows = [] } = host.image() ?? {};
  const numbersOf = new Map(lacks);
  const others = places.filter((one) => one !== rank);
  const told = new Map(lacking.includes(rank) ? others.map((one) => [one, new Map(numbersOf.get(one))]) : []);
  const heard = yield* host.tellSent(
    told,
    lacking.filter((one) => one !== rank),
  );
  const has = (from: number, below: FlowNumbers): boolean =>
    isFailing ? hasBelow(flows, from, below) : (streams as MeetingStreams).has(from, below);
  const answers = yield* host.tell(heard.every(([from, below]) => has(from, below)) ? 1 : 0);
  return answers.indexOf(0);
}

export function* meetGroups<W, V extends GroupMember>(host: GroupMeetingHost<W, V>): MeetingSteps<W, 'in place' | 'back'> {
  const { rank, lives, group } = host;
  const views = yield* host.exchange();
  const runner = views.find(({ mode }) => mode === 'runs' || mode === 'again');
  const groups = runner?.groups ?? [];
  const plan = runner === undefined ? undefined : planGroups(views, groups);
  const why = plan && whyNot(views, plan, host.mayRestart);
  if (plan === undefined || why !== undefined) return host.goBack(views, why);
  if (group.groups.length === 0) host.form(groups);
  const places = [...views.keys()];
  const replaced = places.filter((one) => views[one].mode === 'new');
  for (const one of replaced) lives.replaced(one);
  lives.met((one) => views[one].life);
  host.listen();
  const isFailing = plan.failing.has(groups[rank]);
  const living = places.filter((one) => one !== rank && views[one].mode !== 'new');
  const stopping = living.filter((one) => plan.failing.has(groups[one]));
  const tellAll = (): ReadonlyMap<number, FlowNumbers> =>
    new Map(stopping.map((one) => [one, lives.stopFor(one, views[one].life, host.streams)]));
  const goesBack = isFailing && (host.isRunning || lives.isAgain);
  const heard: (readonly [number, FlowNumbers])[] = [];
  let told: ReadonlyMap<number, FlowNumbers> = new Map();
  if (!isFailing) {
    told = tellAll();
    for (const one of stopping) host.streams?.stopTo(one);
  } else if (goesBack) {
    // What this rank takes into nothing is answered: whoever goes on must have stopped before, or would take a synchronous message for matched.
    const going = living.filter((one) => !stopping.includes(one));
    heard.push(...(yield* host.tellSent(told, going)));
    if (host.isRunning) {
      lives.end(living, (one) => views[one].life, host.streams);
      host.endRun();
    }
    told = tellAll();
  }
  const isAgain = isFailing && lives.isAgain;
  heard.push(...(yield* host.tellSent(told, goesBack ? stopping : [])));
  for (const [from, numbers] of heard) lives.told(from, numbers);
  if (isAgain) {
    const streams = host.streams as MeetingStreams;
    // Members that go back begin again with older numbers: what a failover sends once more has come before they do.
    const isClear = (): boolean => lives.hasTaken(streams) && stopping.every((one) => streams.isDrained(one));
    while (!isClear()) yield host.nextTurn(streams, isClear);
  }
  const isWell = yield* host.fetch(plan, views);
  const isLacking = (host.image()?.lacks.length ?? 0) > 0;
  const ends = yield* host.tell(isWell ? (isLacking ? FETCHED.LACKING : FETCHED.WHOLE) : FETCHED.WRONG);
  const wrong = ends.indexOf(FETCHED.WRONG);
  if (wrong >= 0) return host.goBack(views, `rank ${wrong} could not take its image`);
  const lacking = places.filter((one) => ends[one] === FETCHED.LACKING);
  if (lacking.length > 0) {
    const short = yield* shortOf(host, places, lacking, isFailing);
    if (short >= 0)
      return host.goBack(views, `the log of rank ${lacking} in its last save lacks what rank ${short} asks for (ft_log_bytes_max)`);
  }
  // From here to the next step nothing comes in between.
  const line = plan.lines[groups[rank]];
  group.settle(plan.lines);
  lives.begins([...stopping, ...replaced]);
  if (isFailing) {
    if (isAgain) lives.begin();
    group.adopt(host.beginFrom(line, isAgain));
  } else host.goOn((one) => groups[one] === groups[rank], views);
  host.settled(plan, views);
  yield* host.synchronise();
  host.open((holder) => !views[holder].entries.some(({ owner, k }) => owner === rank && k === line));
  return 'in place';
}
