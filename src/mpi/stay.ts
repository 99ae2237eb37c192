// Why a rank's process stays: the other ranks may need it until finalize(), whether its program still does something or not. All descriptors
// and timers of the runtime let the process end; one timer here keeps it. So it shows when the program has come to its end without finalize(),
// which would leave the whole job standing there without a word:
//
//   STAYING   the timer holds the process
//   PROBING   nothing was asked of the runtime for a while and nothing is awaited of it: the timer lets go. If anything else keeps the process,
//             nothing happens; any call takes the timer back. If nothing does, Node says so (beforeExit)
//   EMPTY     Node has said so, and its other listeners have had their turn to begin something; once it says so again, the user is told
//   TOLD      the timer holds the process, to the end
export interface StayOptions {
  /** Something is awaited of the runtime. */
  isAwaited(): boolean;
  /** The program has come to its end. */
  onForgotten(): void;
  lookMs?: number;
  /** Where Node says that nothing else keeps the process. */
  process?: Announcer;
}

type Announcer = Pick<NodeJS.Process, 'on' | 'off'>;
/** One listener for all runtimes of a process. */
const listening = new Map<Announcer, { stays: Set<Stay>; listener: () => void }>();

const LOOK_MS = 1000;

type StayState = 'STAYING' | 'PROBING' | 'EMPTY' | 'TOLD' | 'OVER';

export class Stay {
  private readonly options: StayOptions;
  private readonly process: Announcer;
  private readonly timer: NodeJS.Timeout;
  private state: StayState = 'STAYING';
  /** Something was asked of the runtime since the last look. */
  private asked = true;

  constructor(options: StayOptions) {
    this.options = options;
    this.process = options.process ?? process;
    this.timer = setInterval(() => this.look(), options.lookMs ?? LOOK_MS);
    this.listen();
  }

  /** The program has called the runtime. Cheap: it is told with every turn that a call asks for. */
  readonly onCall = (): void => {
    this.asked = true;
    if (this.state === 'PROBING' || this.state === 'EMPTY') this.hold('STAYING');
  };

  /** The process may end. */
  end(): void {
    if (this.state === 'OVER') return;
    this.state = 'OVER';
    clearInterval(this.timer);
    const known = listening.get(this.process);
    known?.stays.delete(this);
    if (known === undefined || known.stays.size > 0) return;
    this.process.off('beforeExit', known.listener);
    listening.delete(this.process);
  }

  private listen(): void {
    let known = listening.get(this.process);
    if (known === undefined) {
      const stays = new Set<Stay>();
      known = { stays, listener: () => void 0 };
      known.listener = () => {
        for (const stay of [...stays]) stay.onEmpty();
      };
      listening.set(this.process, known);
      this.process.on('beforeExit', known.listener);
    }
    known.stays.add(this);
  }

  private look(): void {
    if (this.state !== 'STAYING') return;
    const isQuiet = !this.asked && !this.options.isAwaited();
    this.asked = false;
    if (!isQuiet) return;
    this.state = 'PROBING';
    this.timer.unref();
  }

  private hold(next: 'STAYING' | 'TOLD'): void {
    this.state = next;
    this.timer.ref();
  }

  private onEmpty(): void {
    // A process that another runtime holds never comes here.
    if (this.state === 'STAYING' || this.state === 'TOLD' || this.state === 'OVER') return;
    if (this.options.isAwaited()) return this.hold('STAYING');
    if (this.state === 'EMPTY') {
      this.hold('TOLD');
      this.options.onForgotten();
      return;
    }
    this.state = 'EMPTY';
    // One more round of the event loop, in which whatever other listeners begin counts.
    setImmediate(() => undefined);
  }
}
