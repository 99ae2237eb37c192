// The one form in which a parameter is written: level, default, unit, range, a sentence. The rows are in params.ts files next to what they
// control.

/**
 * Who sets a parameter, after the levels of MPI's tool interface (MPI 4.1, section 15.3.2): everybody who runs programs, those who tune
 * a machine or an application, those who work on this library.
 */
export type ParamLevel = 'user' | 'tuner' | 'developer';

interface CommonParam {
  level: ParamLevel;
  /** What it does, in a sentence. */
  text: string;
}
export interface IntParam extends CommonParam {
  kind: 'int';
  default: number;
  unit: string;
  min: number;
  max: number;
}
export interface BoolParam extends CommonParam {
  kind: 'bool';
  default: boolean;
}
export interface StringParam extends CommonParam {
  kind: 'string';
  default: string;
  choices?: readonly string[];
}
/** Words separated by commas. */
export interface ListParam extends CommonParam {
  kind: 'list';
  default: string;
}
export type ParamSpec = IntParam | BoolParam | StringParam | ListParam;
export type ParamRows = Readonly<Record<string, ParamSpec>>;

export const KIB = 1024;
export const MIB = 1024 * 1024;

export const int = (level: ParamLevel, value: number, unit: string, min: number, max: number, text: string): IntParam => ({
  kind: 'int',
  level,
  default: value,
  unit,
  min,
  max,
  text,
});
export const bool = (level: ParamLevel, value: boolean, text: string): BoolParam => ({ kind: 'bool', level, default: value, text });
export const list = (level: ParamLevel, value: string, text: string): ListParam => ({ kind: 'list', level, default: value, text });
export const string = (level: ParamLevel, value: string, text: string, choices?: readonly string[]): StringParam =>
  choices === undefined ? { kind: 'string', level, default: value, text } : { kind: 'string', level, default: value, text, choices };
