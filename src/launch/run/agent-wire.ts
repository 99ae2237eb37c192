// What the launcher and its agent on another host say to each other: one JSON text per line (lines.ts), over the standard input and output
// of the command that reaches the host (ssh). Types.
import type { RankEnd } from './rank-child.ts';

export const AGENT_VERSION = 1;

/** Launcher to agent. The end of its input means that the launcher is gone, or wants no more: the agent kills what it has started. */
export type ToAgent =
  | {
      do: 'start';
      rank: number;
      command: string[];
      cwd: string;
      env: Record<string, string>;
      /** Base64. It travels inside of ssh, and is in no argument list and no environment. */
      secret: string;
      hasInput: boolean;
    }
  | { do: 'signal'; rank: number; signal: NodeJS.Signals }
  /** Base64. */
  | { do: 'input'; rank: number; data: string }
  | { do: 'endInput'; rank: number };

/** Agent to launcher. */
export type FromAgent =
  | { is: 'hello'; version: number; pid: number; node: string }
  | { is: 'started'; rank: number; pid: number }
  | { is: 'failed'; rank: number; text: string }
  /** Base64. */
  | { is: 'output'; rank: number; fd: 1 | 2; data: string }
  | ({ is: 'ended'; rank: number } & RankEnd)
  | { is: 'closed'; rank: number };
