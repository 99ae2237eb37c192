// The parameters of all rails over byte streams; src/params.ts puts them into the table of all.
import { bool, int, KIB, type ParamRows } from '../../param-spec.ts';

export const STREAM_PARAMS = {
  btl_base_payload_crc: bool('user', false, 'Check payloads by CRC32C too (headers always are). Costs CPU.'),
  btl_base_refusals_max: int(
    'developer',
    16,
    'frames',
    1,
    1_000_000,
    'A rail that refused this many damaged payloads within a second goes down.',
  ),
  btl_base_ack_frames: int('developer', 64, 'frames', 1, 1_000_000, 'Report the delivered count at the latest after this many frames.'),
  btl_base_ack_bytes: int(
    'developer',
    256 * KIB,
    'bytes',
    1 * KIB,
    2 ** 40,
    'Report the delivered count at the latest after this many bytes.',
  ),
  btl_base_ack_delay_ms: int('tuner', 2, 'ms', 0, 1000, 'Report the delivered count at the latest after this time.'),
  btl_base_connect_again_ms: int(
    'developer',
    200,
    'ms',
    10,
    600_000,
    'While a connection is not open, another is begun at the same time, this often, since the kernel repeats its first packet only after a second.',
  ),
  btl_base_handshake_timeout_ms: int(
    'developer',
    3000,
    'ms',
    50,
    600_000,
    'A connection that has not finished its handshake by then is closed. By default more where many ranks share a processor.',
  ),
  btl_base_handshakes_max: int(
    'developer',
    256,
    'connections',
    1,
    65536,
    'Inbound connections in the handshake at the same time; further ones are refused.',
  ),
} as const satisfies ParamRows;
