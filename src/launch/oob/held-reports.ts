// Reports of ranks that wait because their reader is slow: a newer report is merged with the older one, so that the waiting data does not
// grow with time, and only the states in between are lost.
import { REPORT_MOVES_MAX, REPORT_RAILS_MAX, type Telemetry, type TelemetryMove, type TelemetryRail } from './telemetry.ts';

/** For all ranks together: as many ends of rails as a dashboard keeps, and some thousand changes of state. */
const RAILS_HELD_MAX = 16_384;
const MOVES_HELD_MAX = 4096;

interface Held {
  last: Telemetry;
  rails: Map<string, TelemetryRail>;
  moves: TelemetryMove[];
  counters: Record<string, number>;
}

export class HeldReports {
  private readonly railsMax: number;
  private readonly movesMax: number;
  private held = new Map<number, Held>();
  private rails = 0;
  private moves = 0;
  /** Changes of state that found no room, by rank, since the start: a report counts them so. */
  private readonly movesLost = new Map<number, number>();

  constructor({ railsMax = RAILS_HELD_MAX, movesMax = MOVES_HELD_MAX } = {}) {
    this.railsMax = railsMax;
    this.movesMax = movesMax;
  }

  get isEmpty(): boolean {
    return this.held.size === 0;
  }

  add(rank: number, report: Telemetry): void {
    const held: Held = this.held.get(rank) ?? { last: report, rails: new Map(), moves: [], counters: {} };
    this.held.set(rank, held);
    held.last = report;
    Object.assign(held.counters, report.counters);
    for (const rail of report.rails) this.addRail(held, rail);
    for (const move of report.moves) {
      if (this.moves < this.movesMax) {
        held.moves.push(move);
        this.moves++;
      } else this.movesLost.set(rank, (this.movesLost.get(rank) ?? 0) + 1);
    }
  }

  /** Everything that was added, in reports of the length that a rank's own have; nothing is held afterwards. */
  *take(): Generator<{ rank: number; report: Telemetry }> {
    const all = this.held;
    this.held = new Map();
    this.rails = 0;
    this.moves = 0;
    for (const [rank, { last, rails, moves, counters }] of all) {
      const list = [...rails.values()];
      let [railsAt, movesAt] = [0, 0];
      do {
        const part = list.slice(railsAt, railsAt + REPORT_RAILS_MAX);
        const partOfMoves = moves.slice(movesAt, movesAt + REPORT_MOVES_MAX);
        railsAt += part.length;
        movesAt += partOfMoves.length;
        const movesDropped = last.movesDropped + (this.movesLost.get(rank) ?? 0);
        yield { rank, report: { ...last, rails: part, moves: partOfMoves, movesDropped, counters } };
      } while (railsAt < list.length || movesAt < moves.length);
    }
  }

  private addRail({ rails }: Held, rail: TelemetryRail): void {
    const key = `${rail.peer} ${rail.rail}`;
    const before = rails.get(key);
    if (before === undefined) {
      if (this.rails >= this.railsMax) return;
      this.rails++;
    }
    // Its name comes once.
    rails.set(key, { ...rail, name: rail.name ?? before?.name ?? null });
  }
}
