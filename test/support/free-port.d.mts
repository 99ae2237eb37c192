// Types of free-port.mjs, for the tests.
export function freePort(): Promise<number>;
