// What a runtime is given: its job, its transports, and what else it uses of the process that it runs in.
import type { BtlContext, BtlModule } from '../btl/btl.ts';
import type { Job } from '../launch/job.ts';
import type { OobClient } from '../launch/oob/client.ts';
import type { NativeBinding } from '../native/binding.ts';
import type { Poller } from '../native/poller.ts';
import type { ParamTable } from '../params.ts';
import type { Driver, Engine } from '../progress/engine.ts';
import type { ModexTable } from './address-book.ts';
import type { RailFaultOrder } from './telemetry.ts';

/** What the runtime uses of the out-of-band channel. */
export type RuntimeOob = Pick<OobClient, 'updateModex' | 'abort' | 'finalized' | 'railEvent' | 'telemetry' | 'close'> &
  Partial<
    Pick<
      OobClient,
      | 'askWaits'
      | 'isConnected'
      | 'lost'
      | 'unreachable'
      | 'waitsReport'
      | 'pushWaits'
      | 'barrier'
      | 'missingAt'
      | 'standbyState'
      | 'callStandby'
      | 'askBulletin'
      | 'ended'
    >
  > & {
    modex(own: unknown): Promise<ModexTable>;
    on(event: 'modexUpdate', listener: (rank: number, json: unknown) => void): unknown;
    on(event: 'exit', listener: (rank: number, info: ExitNotice) => void): unknown;
    on(event: 'waitsRequest', listener: (id: number) => void): unknown;
    on(event: 'abort', listener: (info: { rank: number; code: number; reason: string }) => void): unknown;
    on(event: 'standbyState', listener: (rank: number, isWaiting: boolean) => void): unknown;
    on(event: 'standbyCall', listener: (caller: number, call: Uint8Array) => void): unknown;
    on(event: 'processJoined', listener: (number: number, incarnation: number, json: unknown) => void): unknown;
    on(event: 'standbysEnd', listener: () => void): unknown;
    on(event: 'declaredDead', listener: (text: string) => void): unknown;
    on(event: 'railFault', listener: (fault: RailFaultOrder) => void): unknown;
  };

/** How the process of a rank ended. */
export interface ExitNotice {
  code: number | undefined;
  signal: string;
  finalized: boolean;
  lost: boolean;
  /** A newer process of its index has joined. */
  replaced?: boolean;
}

export type RuntimeJob = Omit<Job, 'oob'> & { oob: RuntimeOob | undefined };

/** A driver that is told its engine. */
export interface RuntimeDriver extends Driver {
  attach(engine: Engine): void;
  /** Told of the application's calls, where the driver can. */
  onCall?: (() => void) | undefined;
  /** Called behind each turn that begins with nothing of the program about to run; replicas need a driver that has it. */
  atRest?: (() => void) | undefined;
  /** Readiness of descriptors for the transports, where the driver has it. */
  readonly poller?: Poller;
  /** There are more ranks than processors here: who waits offers the processor to others early. */
  expectCrowd?(): void;
  /** After the engine is closed. */
  close?(): void;
}

/** Makes a transport once its context is known. */
export interface ModuleSource {
  readonly name: string;
  create(context: BtlContext): BtlModule;
}

export interface RuntimeOptions {
  params?: ParamTable;
  /** Transports to open; their names must be unique. */
  modules: readonly ModuleSource[];
  /** Transports that cannot work here, with the reason, for error messages. */
  excluded?: Readonly<Record<string, string>>;
  driver?: RuntimeDriver;
  /** The native part, for the poller and the loops of reductions: what loads by default unless a driver is given; false = without. */
  native?: NativeBinding | false;
  /** Ends the process after abort(). */
  exit?: (code: number) => void;
  /** Lines for people, such as refused connections. */
  log?: (level: 'debug' | 'info' | 'warn', text: string) => void;
  /** Called once everything is closed. */
  onClosed?: () => void;
}
