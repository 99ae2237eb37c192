// What makes one rail bad without taking it down: what happens to the frames that enter its switch, port by port.
//   PLAIN      the bridge passes them on; a filter at a port drops those that are muted or lost by chance
//   FORWARDED  the filters drop all of them; the forwarder, which sees them first, passes frames on
// Changes are made one after the other.
import { Forwarder, type ForwarderPort, type ForwardSettings } from './forwarder.ts';
import { ingressLossLines, noIngressLossLine, segmentationLine, wirePort } from './plan.ts';
import { runBatch, ToolSession } from './run.ts';

/** What becomes of what one node sends. */
export interface NodeImpairment extends ForwardSettings {
  isMute: boolean;
}

const WHOLE: NodeImpairment = {
  isMute: false,
  lossPercent: 0,
  delayMs: 0,
  spreadMs: 0,
  reorderPercent: 0,
  holdMs: 0,
  flipPercent: 0,
};

export interface ImpairedRail {
  readonly rail: number;
  /** Namespaces of the nodes. */
  readonly namespaces: readonly string[];
  readonly wireNamespace: string;
  readonly seed: number;
}

/** Only the forwarder can do that. */
const needsForwarder = ({ delayMs, spreadMs, reorderPercent, flipPercent }: NodeImpairment): boolean =>
  delayMs > 0 || spreadMs > 0 || reorderPercent > 0 || flipPercent > 0;

/** Something happens to single frames. */
const isPerFrame = (node: NodeImpairment): boolean => node.lossPercent > 0 || needsForwarder(node);

export class Impairments {
  private readonly place: ImpairedRail;
  private readonly onLost: (why: string) => void;
  private nodes: NodeImpairment[];
  /** No frame passes from port to port, since they are unplugged from the bridge: so the forwarder must not pass any either. */
  private isCut = false;
  private forwarder: Forwarder | undefined;
  /** Whether each port has a filter, and whether each node cuts what it sends into frames. */
  private readonly filtered: boolean[];
  private readonly cutting: boolean[];
  private last: Promise<unknown> = Promise.resolve();
  private isStopped = false;

  /** `onLost` is called when a forwarder has died and the rail is without what it did. */
  constructor(place: ImpairedRail, onLost: (why: string) => void) {
    this.place = place;
    this.onLost = onLost;
    this.nodes = place.namespaces.map(() => ({ ...WHOLE }));
    this.filtered = place.namespaces.map(() => false);
    this.cutting = place.namespaces.map(() => false);
  }

  /** Changes what becomes of what one node sends, or every node, and resolves when it is so. */
  change(what: Partial<NodeImpairment>, node?: number): Promise<void> {
    return this.inTurn(() => this.become(this.nodes.map((one, i) => (node === undefined || node === i ? { ...one, ...what } : one))));
  }

  /** The ports are unplugged from the bridge, or were plugged in again. */
  cut(isCut: boolean): Promise<void> {
    return this.inTurn(async () => {
      this.isCut = isCut;
      await this.tellForwarder();
    });
  }

  /** Nothing happens to any frame. What the forwarder holds is delivered at once. */
  clear(): Promise<void> {
    return this.inTurn(async () => {
      this.isCut = false;
      await this.become(this.nodes.map(() => ({ ...WHOLE })));
    });
  }

  /** By node; undefined where no forwarder runs. */
  stats(): Promise<ForwarderPort[] | undefined> {
    return this.inTurn(async () => await this.forwarder?.stats());
  }

  /** The process of the forwarder, if one runs. */
  get forwarderPid(): number | undefined {
    return this.forwarder?.pid;
  }

  /** The lab goes: nothing is mended any more. */
  async stop(): Promise<void> {
    this.isStopped = true;
    this.forwarder?.kill();
    await this.last;
    this.forwarder?.kill();
    await this.forwarder?.ended;
  }

  private inTurn<T>(work: () => Promise<T>): Promise<T> {
    const turn = this.last.then(work);
    this.last = turn.catch(() => undefined);
    return turn;
  }

  private port(node: number): string {
    return wirePort(node, this.place.rail);
  }

  private async become(nodes: NodeImpairment[]): Promise<void> {
    if (nodes.some(needsForwarder) && this.forwarder === undefined) {
      // The forwarder first: where there is none, nothing changes.
      const ports = nodes.map((_, node) => this.port(node));
      const forwarder = await Forwarder.start(this.place.wireNamespace, ports, this.place.seed);
      const before = this.nodes;
      this.nodes = nodes;
      try {
        await this.cutIntoFrames(nodes);
        await this.beginForwarding(forwarder);
      } catch (error) {
        forwarder.kill();
        this.forwarder = undefined;
        await this.become(before);
        throw error;
      }
      return;
    }
    this.nodes = nodes;
    await this.cutIntoFrames(nodes);
    if (nodes.some(needsForwarder)) await this.tellForwarder();
    else if (this.forwarder !== undefined) await this.endForwarding(this.forwarder);
    else await this.setFilters((lines) => runBatch('tc', this.place.wireNamespace, lines));
  }

  /** A packet of segmentation offload would be lost, or held, as one: forty frames in a row. */
  private async cutIntoFrames(nodes: readonly NodeImpairment[]): Promise<void> {
    const isAny = nodes.some(needsForwarder);
    await Promise.all(
      this.place.namespaces.map(async (namespace, node) => {
        const isCutting = isAny || isPerFrame(nodes[node]);
        if (this.cutting[node] === isCutting) return;
        await runBatch('ip', namespace, [segmentationLine(this.place.rail, !isCutting)]);
        this.cutting[node] = isCutting;
      }),
    );
  }

  private async tellForwarder(): Promise<void> {
    await this.forwarder?.set(this.nodes.map((node) => ({ ...node, lossPercent: node.isMute || this.isCut ? 100 : node.lossPercent })));
  }

  private async beginForwarding(forwarder: Forwarder): Promise<void> {
    // A frame that comes between the two steps is passed on twice; the other way round it would be lost. One tc for all, since there
    // are many frames while another is started.
    const session = new ToolSession('tc', this.place.wireNamespace);
    try {
      this.forwarder = forwarder;
      await this.tellForwarder();
      await this.setFilters((lines) => session.run(lines), 'prepare');
      await forwarder.on();
      await this.setFilters((lines) => session.run(lines));
    } finally {
      await session.end();
    }
    void forwarder.ended.then((why) => this.mendAfter(forwarder, why));
  }

  private async endForwarding(forwarder: Forwarder): Promise<void> {
    this.forwarder = undefined;
    const session = new ToolSession('tc', this.place.wireNamespace);
    try {
      await this.setFilters((lines) => session.run(lines));
    } finally {
      await forwarder.end();
      await session.end();
    }
  }

  /** The rail is without its forwarder, and the filters still drop everything. */
  private async mendAfter(forwarder: Forwarder, why: string): Promise<void> {
    if (this.forwarder !== forwarder || this.isStopped) return;
    await this.inTurn(async () => {
      if (this.forwarder !== forwarder || this.isStopped) return;
      this.forwarder = undefined;
      await this.become(this.nodes.map(({ isMute, lossPercent }) => ({ ...WHOLE, isMute, lossPercent })));
    }).catch((error: Error) => {
      why += `; and the rail could not be restored: ${error.message}`;
    });
    if (!this.isStopped) this.onLost(why);
  }

  /** `prepare`: only makes the places for filters, which drop nothing yet. */
  private async setFilters(apply: (lines: string[]) => Promise<void>, step?: 'prepare'): Promise<void> {
    const { rail } = this.place;
    const lines = this.nodes.flatMap(({ isMute, lossPercent }, node) => {
      const percent = isMute || this.forwarder !== undefined ? 100 : lossPercent;
      const wasFiltered = this.filtered[node];
      this.filtered[node] = percent > 0;
      if (percent === 0) return wasFiltered ? [noIngressLossLine(node, rail)] : [];
      const all = ingressLossLines(node, rail, percent);
      return step === 'prepare' ? all.slice(0, 1) : all;
    });
    if (lines.length > 0) await apply(lines);
  }
}
