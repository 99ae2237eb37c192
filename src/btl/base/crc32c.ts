// CRC32C of headers and, by option, payloads, as the transports use it.
export { crc32c, crc32cBackend } from '../../native/crc32c.ts';
export { crc32cJs } from '../../util/crc32c.ts';
