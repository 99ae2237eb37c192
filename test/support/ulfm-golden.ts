// Golden bytes of service messages: reads docs/internals/golden/ulfm.json, makes the messages that it describes, and renders them for
// docs/internals/ULFM.md. Used by the test of the wire and by the fuzz tests.
import { readFileSync } from 'node:fs';
import { Bitmap } from '../../src/ulfm/bitmap.ts';
import { Gathered, type Lock, type Succession, type Value } from '../../src/ulfm/values.ts';
import { SERVICE, SERVICE_NAMES, type ServiceMessage } from '../../src/ulfm/wire.ts';
import { GOLDEN_DIR } from './golden.ts';

interface ValueFields {
  operations: number;
  generation: number;
  flag: number;
  newId: number;
  failed: number[];
  acked: number[];
  successions: Succession[];
}

interface StateFields {
  operations: number;
  flag: number;
  covers: number[];
  dead: number[];
  acked: number[];
  lock?: { generation: number; rank: number; value: ValueFields };
}

export interface GoldenService {
  name: string;
  /** Members of the communicator. */
  size: number;
  fields: Record<string, unknown> & {
    type: keyof typeof SERVICE;
    value?: ValueFields;
    gathered?: StateFields;
    covers?: number[];
    newcomers?: number[];
  };
  hex: string;
}

export const ULFM_MD = new URL('../../docs/internals/ULFM.md', import.meta.url);
export const goldenServices = (): { about: string; messages: GoldenService[] } =>
  JSON.parse(readFileSync(new URL('ulfm.json', GOLDEN_DIR), 'utf8'));

const valueFrom = (size: number, { failed, acked, ...rest }: ValueFields): Value => ({
  ...rest,
  failed: Bitmap.of(size, failed),
  acked: Bitmap.of(size, acked),
});

/** The message that the fields of a golden one describe. */
export function serviceOf({ size, fields }: Omit<GoldenService, 'hex' | 'name'>): ServiceMessage {
  const { type, value, gathered: state, covers, newcomers, ...rest } = fields;
  const message: Record<string, unknown> = { ...rest, type: SERVICE[type] };
  if (value !== undefined) message.value = valueFrom(size, value);
  if (covers !== undefined) message.covers = Bitmap.of(size, covers);
  if (newcomers !== undefined) message.newcomers = Bitmap.of(size, newcomers);
  if (state !== undefined) {
    const gathered = new Gathered(size);
    gathered.operations = state.operations;
    gathered.flag = state.flag;
    gathered.covers.addAll(Bitmap.of(size, state.covers));
    gathered.dead.addAll(Bitmap.of(size, state.dead));
    gathered.acked.keepOnly(Bitmap.of(size, state.acked));
    if (state.lock !== undefined) gathered.lock = { ...state.lock, value: valueFrom(size, state.lock.value) } as Lock;
    message.gathered = gathered;
  }
  return message as unknown as ServiceMessage;
}

const plainValue = ({ failed, acked, ...rest }: Value): ValueFields => ({
  ...rest,
  successions: [...rest.successions],
  failed: [...failed],
  acked: [...acked],
});

/** A message as a golden one writes it. */
export function fieldsOfService(message: ServiceMessage): GoldenService['fields'] {
  const fields: Record<string, unknown> = { ...message, type: SERVICE_NAMES[message.type] };
  if ('value' in message) fields.value = plainValue(message.value);
  if ('covers' in message) fields.covers = [...message.covers];
  if ('newcomers' in message) fields.newcomers = [...message.newcomers];
  if ('gathered' in message) {
    const { operations, flag, covers, dead, acked, lock } = message.gathered;
    fields.gathered = { operations, flag, covers: [...covers], dead: [...dead], acked: [...acked] };
    if (lock !== undefined) Object.assign(fields.gathered as object, { lock: { ...lock, value: plainValue(lock.value) } });
  }
  return fields as GoldenService['fields'];
}

/** The golden part of docs/internals/ULFM.md. */
export function renderServices(): string {
  return goldenServices()
    .messages.map(({ name, size, fields, hex }) => {
      const text = Object.entries(fields)
        .map(([key, value]) => `${key}=${typeof value === 'object' ? JSON.stringify(value) : value}`)
        .join(' ');
      const lines: string[] = [];
      for (let at = 0; at < hex.length; at += 32) {
        lines.push(`${(at / 2).toString(16).padStart(4, '0')}  ${(hex.slice(at, at + 32).match(/.{1,8}/g) as string[]).join(' ')}`);
      }
      return `**${name}**\n\n\`\`\`text\nsize=${size} ${text}\n${lines.join('\n')}\n\`\`\`\n`;
    })
    .join('\n');
}
