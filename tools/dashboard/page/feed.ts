// The connection to the launcher: live data over a WebSocket that is opened again while the page is open, and orders by POST. The token is
// that of the page's own address.
import type { ControlAction, PageMessage } from '../messages.ts';

const RETRY_MIN_MS = 250;
const RETRY_MAX_MS = 5000;

export type ConnectionState = 'connecting' | 'live' | 'lost';

export interface FeedListener {
  onMessage(message: PageMessage): void;
  onConnection(state: ConnectionState): void;
}

export class Feed {
  private readonly token = new URLSearchParams(location.search).get('token') ?? '';
  private readonly listener: FeedListener;
  private failures = 0;

  constructor(listener: FeedListener) {
    this.listener = listener;
  }

  open(): void {
    this.listener.onConnection(this.failures === 0 ? 'connecting' : 'lost');
    const socket = new WebSocket(`ws://${location.host}/live?token=${encodeURIComponent(this.token)}`);
    socket.addEventListener('message', ({ data }: MessageEvent<string>) => {
      this.failures = 0;
      this.listener.onConnection('live');
      this.listener.onMessage(JSON.parse(data) as PageMessage);
    });
    // An error is followed by a close.
    socket.addEventListener('close', () => {
      this.failures++;
      this.listener.onConnection('lost');
      setTimeout(() => this.open(), Math.min(RETRY_MAX_MS, RETRY_MIN_MS * 2 ** this.failures));
    });
  }

  /** Rejects with the launcher's reason. */
  async order(id: string, action: ControlAction): Promise<void> {
    await this.post('/control', { id, action });
  }

  async askWaits(): Promise<void> {
    await this.post('/waits', {});
  }

  private async post(path: string, body: unknown): Promise<void> {
    const headers = { authorization: `Bearer ${this.token}`, 'content-type': 'application/json' };
    const response = await fetch(path, { method: 'POST', headers, body: JSON.stringify(body) });
    if (!response.ok) throw new Error((await response.text()).trim());
  }
}
