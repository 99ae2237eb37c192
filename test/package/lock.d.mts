// Types of lock.mjs, for tests in TypeScript.
export const LOCK: string;
export function missingEntries(lock: { packages: Record<string, object> }): Record<string, object>;
