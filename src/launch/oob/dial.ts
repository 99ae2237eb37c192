// One connection of a rank to the server of the out-of-band channel, from the dial to both proofs, for the channel itself and for the
// lifeline. Its sockets never keep a finished process alive.
import { randomBytes } from 'node:crypto';
import { connect, type Socket, type TcpNetConnectOpts } from 'node:net';
import { WebSocket } from 'ws';
import { MultirailError } from '../../errors.ts';
import { decodeEnvelope, encodeEnvelope } from './envelope.ts';
import {
  boundedText,
  type Envelope,
  HANDSHAKE_BYTES_MAX,
  type HelloBody,
  MESSAGE_BYTES_MAX,
  NONCE_BYTES,
  OOB_VERSION,
  type OobBodies,
  proofEquals,
  proofOfLauncher,
  proofOfRank,
} from './messages.ts';

/** A lifeline that is idle for this long is asked about by the kernel. */
export const LIFELINE_IDLE_MS = 5000;

export interface DialOptions {
  url: string;
  secret: Uint8Array;
  timeoutMs: number;
  /** What the hello claims; a job id that is undefined is learnt from the server. */
  claims: Omit<HelloBody, 'version' | 'nonce' | 'pid' | 'jobId'> & { jobId: string | undefined };
}

export interface DialEvents {
  /** Both sides are proven. */
  onWelcome(welcome: Omit<OobBodies['welcome'], 'proof'>, jobId: string): void;
  /** After the welcome. What it throws ends the connection. */
  onMessage(envelope: Envelope): void;
  onRefused(reason: string, text: string): void;
  /** Once, whatever it was; nothing follows. */
  onEnd(text: string): void;
}

export class OobDial {
  readonly ws: WebSocket;
  private readonly options: DialOptions;
  private readonly events: DialEvents;
  private readonly deadline: NodeJS.Timeout;
  private transport: Socket | undefined;
  private strangersBytes = 0;
  private nonce: Uint8Array | undefined;
  private hello: HelloBody | undefined;
  private welcomed = false;
  private ended = false;

  constructor(options: DialOptions, events: DialEvents) {
    this.options = options;
    this.events = events;
    this.ws = new WebSocket(options.url, {
      perMessageDeflate: false,
      maxPayload: MESSAGE_BYTES_MAX,
      followRedirects: false,
      // One message per turn: what was awaited runs on before the next message raises its event, and can listen for it.
      allowSynchronousEvents: false,
      createConnection: ((to: TcpNetConnectOpts) => {
        // Not the options as they are: their `path` is that of the URL, and net would take it for a socket file.
        const transport = connect({ host: to.host ?? 'localhost', port: to.port });
        transport.unref();
        transport.setNoDelay(true);
        transport.on('data', this.countStrangersBytes);
        this.transport = transport;
        return transport;
      }) as never,
    });
    // What has come until then is looked at first: this process may have had no processor.
    this.deadline = setTimeout(() => setImmediate(() => this.welcomed || this.fail('no answer in time')), options.timeoutMs);
    this.deadline.unref();
    this.ws.on('error', (error) => this.fail(error.message));
    this.ws.on('close', (code) => this.fail(`closed (${code})`));
    this.ws.on('message', (data, isBinary) => this.onMessage(data as Buffer, isBinary));
  }

  /** The kernel asks the other one's, also while this connection is idle, and while nobody there reads. */
  keepAlive(idleMs: number): void {
    this.transport?.setKeepAlive(true, idleMs);
  }

  send(bytes: Uint8Array): void {
    this.ws.send(bytes, { binary: true });
  }

  /** Where the other end is; undefined when it is not connected. */
  get remote(): { host: string; port: number } | undefined {
    const { remoteAddress: host, remotePort: port } = this.transport ?? {};
    return host === undefined || port === undefined ? undefined : { host, port };
  }

  /** Ends it without a word. */
  terminate(): void {
    this.fail('ended by this side');
  }

  private fail(text: string): void {
    if (this.ended) return;
    this.ended = true;
    clearTimeout(this.deadline);
    this.ws.terminate();
    this.events.onEnd(text);
  }

  // The listener may be an impostor: until it proves the secret it gets little room and little time.
  private readonly countStrangersBytes = (chunk: Buffer): void => {
    this.strangersBytes += chunk.length;
    if (this.strangersBytes <= HANDSHAKE_BYTES_MAX) return;
    // What has waited for this rank follows the welcome at once, in the same piece: that is looked at before anything more is read.
    if (this.hello === undefined) this.fail('too many bytes before the handshake was done');
    else this.transport?.pause();
  };

  private onMessage(data: Buffer, isBinary: boolean): void {
    if (this.ended) return;
    try {
      if (!isBinary) throw handshakeError('text message');
      const envelope = decodeEnvelope(data);
      if (this.welcomed) this.events.onMessage(envelope);
      else this.handshake(envelope);
    } catch (error) {
      this.fail((error as Error).message);
    }
  }

  private handshake(envelope: Envelope): void {
    const { secret, claims } = this.options;
    const { hello, nonce } = this;
    if (envelope.kind === 'challenge' && hello === undefined) {
      if (envelope.body.version !== OOB_VERSION) throw handshakeError(`version ${envelope.body.version}`);
      this.nonce = envelope.body.nonce;
      const jobId = claims.jobId ?? boundedText(envelope.body.jobId, 256);
      this.hello = { ...claims, jobId, version: OOB_VERSION, pid: process.pid, nonce: randomBytes(NONCE_BYTES) };
      this.ws.send(encodeEnvelope(0, 0, 'hello', { ...this.hello, proof: proofOfRank(secret, this.nonce, this.hello) }));
    } else if (envelope.kind === 'welcome' && hello !== undefined && nonce !== undefined) {
      const expected = proofOfLauncher(secret, nonce, hello, envelope.body);
      if (!proofEquals(envelope.body.proof, expected)) throw handshakeError("it does not know the job's secret");
      clearTimeout(this.deadline);
      this.transport?.off('data', this.countStrangersBytes);
      this.transport?.resume();
      this.welcomed = true;
      this.events.onWelcome(envelope.body, hello.jobId);
    } else if (envelope.kind === 'refused') {
      this.events.onRefused(envelope.body.reason, boundedText(envelope.body.text, 1024));
      this.fail(`refused: ${envelope.body.reason}`);
    } else {
      throw handshakeError(`"${envelope.kind}" in the handshake`);
    }
  }
}

function handshakeError(text: string): MultirailError {
  return new MultirailError('ERR_HANDSHAKE', text);
}
