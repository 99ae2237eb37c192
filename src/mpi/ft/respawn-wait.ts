// How long calls of replace() wait for processes that are on their way to take the places of the dead. Each member says in the agreement whether
// it would wait, and what is decided holds for all; here is when this one would, and when it looks again.

/** A call looks again after so long, though nothing is heard: another member may know more, or want to end it. */
const LOOK_MS = 200;

export class RespawnWait {
  private readonly waitMs: number;
  private readonly resume: (id: number) => void;
  /** Until when calls that are under way would wait, by communicator. */
  private readonly deadlines = new Map<number, number>();
  /** Those that wait. */
  private readonly timers = new Map<number, NodeJS.Timeout>();
  private haveEnded = false;

  /** `waitMs`: 0 = nobody starts any. `resume`: the call on that communicator agrees again. */
  constructor(waitMs: number, resume: (id: number) => void) {
    this.waitMs = waitMs;
    this.resume = resume;
  }

  /** A call begins. While it blocks, no word of a process that joins is heard: then it does not wait. */
  begin(id: number, isBlocking: boolean): void {
    if (this.waitMs > 0 && !isBlocking) this.deadlines.set(id, performance.now() + this.waitMs);
  }

  /** The call on that communicator has ended. */
  forget(id: number): void {
    this.deadlines.delete(id);
  }

  /** This process would wait for more that stand by. */
  awaits(id: number): boolean {
    return !this.haveEnded && performance.now() < (this.deadlines.get(id) ?? 0);
  }

  /** All members wait. */
  await(id: number): void {
    const timer = setTimeout(() => {
      this.timers.delete(id);
      this.resume(id);
    }, LOOK_MS);
    this.timers.set(id, timer);
  }

  /** There are more that stand by, or fewer. Returns whether a call goes on. */
  look(): boolean {
    const ids = [...this.timers.keys()];
    for (const id of ids) {
      clearTimeout(this.timers.get(id));
      this.timers.delete(id);
      this.resume(id);
    }
    return ids.length > 0;
  }

  /** Nobody is started any more. */
  standbysEnd(): void {
    this.haveEnded = true;
  }

  close(): void {
    for (const timer of this.timers.values()) clearTimeout(timer);
    this.timers.clear();
  }
}
