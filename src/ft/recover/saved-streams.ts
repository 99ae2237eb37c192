// The numbers of a rank's streams in its image, and what had come and was not received: sections of their own.
import { deserialize, serialize } from 'node:v8';
import type { StreamsImage } from '../../mpi/ft/logged-streams.ts';
import type { RecorderCut } from '../events/recorder.ts';
import type { DecodedSection } from '../image/decode.ts';
import type { NewSection } from '../image/encode.ts';

export const STREAMS_SECTION = 'streams';

export interface SavedStreams {
  readonly streams: StreamsImage;
  /** Numbers of recorded outcomes. */
  readonly outcomes: RecorderCut | undefined;
  /** Calls in which the program could save, so far. */
  readonly attempts: number;
  /** The job was told to end, and all leave behind this save. */
  readonly isLast: boolean;
}

export function streamSections({ streams, outcomes, attempts, isLast }: SavedStreams): Omit<NewSection, 'crc'>[] {
  const { unexpected, ...numbers } = streams;
  return [
    { kind: 'counters', name: STREAMS_SECTION, bytes: new Uint8Array(serialize({ ...numbers, outcomes, attempts, isLast })) },
    { kind: 'channel', name: STREAMS_SECTION, bytes: new Uint8Array(serialize(unexpected)) },
  ];
}

/** Undefined: the image was made without logs. */
export function savedStreamsOf(sections: readonly DecodedSection[]): SavedStreams | undefined {
  const find = (kind: string): DecodedSection | undefined => sections.find((one) => one.kind === kind && one.name === STREAMS_SECTION);
  const counters = find('counters');
  const channel = find('channel');
  if (counters === undefined || channel === undefined) return undefined;
  const { outcomes, attempts, isLast, ...numbers } = deserialize(counters.data) as Omit<StreamsImage, 'unexpected'> &
    Omit<SavedStreams, 'streams'>;
  const unexpected = (deserialize(channel.data) as StreamsImage['unexpected']).map((message) => ({
    ...message,
    payload: new Uint8Array(message.payload),
  }));
  return { streams: { ...numbers, unexpected }, outcomes, attempts, isLast };
}
