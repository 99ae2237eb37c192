// Types of netns-hosts.mjs, for tests in TypeScript.
export function netnsMissing(): string | undefined;
export function makeHosts(subnet: string): { agent: string; subnet: string; remove(): void };
