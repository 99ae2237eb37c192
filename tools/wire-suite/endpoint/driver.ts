// Multirail's own endpoint as the conformance suite drives it: commands in, answers out (convention.ts).
import { PROTOCOL_VERSION } from '../../../src/btl/base/handshake.ts';
import { MultirailError } from '../../../src/errors.ts';
import { hostId } from '../../../src/launch/meeting/identity.ts';
import { type CommandName, type Commands, type Description, DRIVER_VERSION, FEATURES, type Feature } from '../convention.ts';
import { EndpointJob, type EndpointOptions } from './job.ts';

export interface DriverOptions extends EndpointOptions {
  version: string;
}

/** One driver plays one job at a time. */
export class EndpointDriver {
  private readonly options: DriverOptions;
  private current: EndpointJob | undefined;

  constructor(options: DriverOptions) {
    this.options = options;
  }

  /** Carries a command out. Rejects with what the tester is told as `error`. */
  async run<N extends CommandName>(name: N, args: Commands[N]['in']): Promise<Commands[N]['out']> {
    return (await this.dispatch(name, args)) as Commands[N]['out'];
  }

  private async dispatch(name: CommandName, args: unknown): Promise<unknown> {
    switch (name) {
      case 'describe':
        return this.describe();
      case 'start':
        await this.stop();
        this.current = await EndpointJob.start(args as Commands['start']['in'], this.options);
        return { entry: this.current.entry };
      case 'recv':
        this.job.recv(args as Commands['recv']['in']);
        return {};
      case 'send':
        this.job.send(args as Commands['send']['in']);
        return {};
      case 'test':
        return this.job.test((args as Commands['test']['in']).request);
      case 'cancel':
        return { cancelled: this.job.cancel((args as Commands['cancel']['in']).request) };
      case 'probe':
        return this.job.probe(args as Commands['probe']['in']);
      case 'freeContext':
        this.job.freeContext((args as Commands['freeContext']['in']).ctx);
        return {};
      case 'rails':
        return this.job.rails();
      case 'finalize':
        this.job.finalize();
        return {};
      case 'left':
        return { left: this.job.hasLeft() };
      case 'stop':
        await this.stop();
        return {};
      default:
        throw new MultirailError('ERR_ARG', `unknown command "${String(name)}"`);
    }
  }

  async stop(): Promise<void> {
    const job = this.current;
    this.current = undefined;
    await job?.stop();
  }

  private get job(): EndpointJob {
    if (this.current === undefined) throw new MultirailError('ERR_ARG', 'no job was started');
    return this.current;
  }

  private describe(): Description {
    const features = (Object.keys(FEATURES) as Feature[]).filter((name) => name !== 'liveness' || this.options.native !== false);
    return {
      driver: DRIVER_VERSION,
      name: 'multirail',
      version: this.options.version,
      protocol: PROTOCOL_VERSION,
      features,
      transports: ['tcp', 'ws'],
      hostId: hostId(),
    };
  }
}
