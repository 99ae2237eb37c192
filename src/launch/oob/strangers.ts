// Connections to a listener about which nothing is known yet: bounded in number and in time, so that a flood keeps nobody out. When there
// are too many, one of the silent ones is closed, by chance: a real client speaks at once, and a connection that only occupies a place
// cannot be sure of it.

export interface StrangerSocket {
  destroy(): unknown;
  on(event: 'close', listener: () => void): unknown;
}

/** How many are looked at to find one that has said nothing. */
const LOOKS_MAX = 16;

export class Strangers<S extends StrangerSocket> {
  private readonly countMax: number;
  private readonly silentMsMax: number;
  private readonly random: () => number;
  /** Each with the timer that ends it, undefined once it has spoken. */
  private readonly timers = new Map<S, NodeJS.Timeout | undefined>();
  private readonly list: S[] = [];
  private readonly places = new Map<S, number>();
  /** How many had to go for others. */
  ousted = 0;

  constructor(countMax: number, silentMsMax: number, random = Math.random) {
    this.countMax = countMax;
    this.silentMsMax = silentMsMax;
    this.random = random;
  }

  get size(): number {
    return this.list.length;
  }

  /** A new connection. Another one may have to go for it. */
  add(socket: S): void {
    if (this.list.length >= this.countMax) this.oust();
    const timer = setTimeout(() => socket.destroy(), this.silentMsMax);
    timer.unref();
    this.timers.set(socket, timer);
    this.places.set(socket, this.list.length);
    this.list.push(socket);
    socket.on('close', () => this.forget(socket));
  }

  /** It has asked for something sensible: from here on it has a deadline of its own, or none. */
  spoke(socket: S): void {
    if (!this.timers.has(socket)) return;
    clearTimeout(this.timers.get(socket));
    this.timers.set(socket, undefined);
  }

  /** It is gone, or no stranger any more. */
  forget(socket: S): void {
    const place = this.places.get(socket);
    if (place === undefined) return;
    clearTimeout(this.timers.get(socket));
    this.timers.delete(socket);
    this.places.delete(socket);
    const last = this.list.pop() as S;
    if (last === socket) return;
    this.list[place] = last;
    this.places.set(last, place);
  }

  private oust(): void {
    let chosen: S | undefined;
    for (let look = 0; look < LOOKS_MAX; look++) {
      chosen = this.list[Math.floor(this.random() * this.list.length)];
      if (this.timers.get(chosen) !== undefined) break;
    }
    if (chosen === undefined) return;
    this.ousted++;
    this.forget(chosen);
    chosen.destroy();
  }
}
