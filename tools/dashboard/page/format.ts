// Numbers as people read them.

const UNITS = ['B', 'kB', 'MB', 'GB', 'TB', 'PB'] as const;

/** Three significant digits, powers of 1000: 12.3 MB. */
export function bytes(value: number): string {
  let unit = 0;
  let scaled = Math.abs(value);
  while (scaled >= 999.5 && unit < UNITS.length - 1) {
    scaled /= 1000;
    unit++;
  }
  const digits = unit === 0 || scaled >= 99.95 ? 0 : scaled >= 9.995 ? 1 : 2;
  return `${value < 0 ? '-' : ''}${scaled.toFixed(digits)} ${UNITS[unit]}`;
}

export const rate = (bytesPerSecond: number): string => `${bytes(bytesPerSecond)}/s`;

export const count = (value: number): string => value.toLocaleString('en-GB');

/** 0.4 s, 12 s, 3 min 5 s, 2 h 4 min. */
export function duration(ms: number): string {
  const seconds = Math.max(0, ms) / 1000;
  if (seconds < 9.95) return `${seconds.toFixed(1)} s`;
  if (seconds < 59.5) return `${Math.round(seconds)} s`;
  const minutes = Math.round(seconds) / 60;
  if (minutes < 60) return `${Math.floor(minutes)} min ${Math.round(seconds) % 60} s`;
  return `${Math.floor(minutes / 60)} h ${Math.floor(minutes % 60)} min`;
}

/** Time since the job was started: 0:07.3, 12:05.0, 1:02:03.4. */
export function clock(ms: number, decimals = 1): string {
  // Rounded first, so that 59.99 s is a minute and not 0:60.0.
  const scale = 10 ** decimals;
  const total = Math.round((Math.max(0, ms) / 1000) * scale) / scale;
  const hours = Math.floor(total / 3600);
  const minutes = Math.floor(total / 60) % 60;
  const width = decimals === 0 ? 2 : decimals + 3;
  const seconds = (total % 60).toFixed(decimals).padStart(width, '0');
  return hours > 0 ? `${hours}:${String(minutes).padStart(2, '0')}:${seconds}` : `${minutes}:${seconds}`;
}
