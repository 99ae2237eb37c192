// Types of netns-hosts.mjs, for tests in TypeScript.
export function netnsMissing(): string | undefined;
export interface NetnsHosts {
  readonly agent: string;
  readonly subnet: string;
  /** Runs `tc` there. */
  tc(host: string, ...words: string[]): void;
  removeHost(host: string): void;
  remove(): void;
}
export function makeHosts(subnet: string, hosts?: readonly string[]): NetnsHosts;
