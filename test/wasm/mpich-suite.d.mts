/** Runs a command to its end, or to its time. */
export function execute(
  command: string,
  args: string[],
  options?: { cwd?: string; timeoutMs?: number; env?: Record<string, string | undefined> },
): Promise<{ code: number | string; output: string; isLate: boolean }>;
/** Whether a command is there. */
export function has(command: string): Promise<boolean>;
