// Types of is-alive.mjs, for the tests.
export function isAlive(pid: number): boolean;
