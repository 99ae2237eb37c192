// Reads what /metrics gives, by the rules of the text format, strictly: a checker for tests. Throws at the first line that breaks a rule.
const NAME = /^[a-zA-Z_:][a-zA-Z0-9_:]*$/;
const SAMPLE = /^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (-?(?:\d+(?:\.\d+)?(?:e[+-]?\d+)?|Inf)|NaN)$/;
const LABEL = /^([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"(?:,|$)/;

export interface Sample {
  name: string;
  labels: Record<string, string>;
  value: number;
}
export interface Family {
  name: string;
  type: string;
  help: string;
  samples: Sample[];
}

/** The families by name. */
export function parseExposition(text: string, format: 'prometheus' | 'openmetrics'): Map<string, Family> {
  const families = new Map<string, Family>();
  const seen = new Set<string>();
  if (!text.endsWith('\n')) throw new Error('the last line has no end');
  const lines = text.slice(0, -1).split('\n');
  if (format === 'openmetrics' && lines.pop() !== '# EOF') throw new Error('no # EOF at the end');
  let current: Family | undefined;
  let helpOf: { name: string; help: string } | undefined;
  for (const line of lines) {
    const comment = /^# (HELP|TYPE) (\S+) (.+)$/.exec(line);
    if (comment !== null) {
      const [, kind, name, rest] = comment;
      if (!NAME.test(name)) throw new Error(`not a name: ${line}`);
      if (kind === 'HELP') {
        if (families.has(name)) throw new Error(`a family twice: ${line}`);
        helpOf = { name, help: rest };
      } else {
        if (helpOf?.name !== name || !['counter', 'gauge'].includes(rest)) throw new Error(`TYPE without its HELP, or unknown: ${line}`);
        current = { name, type: rest, help: helpOf.help, samples: [] };
        families.set(name, current);
      }
      continue;
    }
    const match = SAMPLE.exec(line);
    if (match === null) throw new Error(`not a sample: ${line}`);
    const wanted = current?.type === 'counter' && format === 'openmetrics' ? `${current.name}_total` : current?.name;
    if (current === undefined || match[1] !== wanted) throw new Error(`a sample outside of its family: ${line}`);
    if (current.type === 'counter' && !match[1].endsWith('_total')) throw new Error(`a counter without _total: ${line}`);
    const key = `${match[1]}{${match[2] ?? ''}}`;
    if (seen.has(key)) throw new Error(`a sample twice: ${line}`);
    seen.add(key);
    current.samples.push({ name: match[1], labels: parseLabels(match[2] ?? '', line), value: Number(match[3]) });
  }
  for (const { name, samples } of families.values()) if (samples.length === 0) throw new Error(`no samples: ${name}`);
  return families;
}

function parseLabels(text: string, line: string): Record<string, string> {
  const labels: Record<string, string> = {};
  for (let rest = text; rest !== ''; ) {
    const match = LABEL.exec(rest);
    if (match === null || match[1] in labels) throw new Error(`labels: ${line}`);
    labels[match[1]] = match[2].replace(/\\(["\\n])/g, (_all, escaped: string) => (escaped === 'n' ? '\n' : escaped));
    rest = rest.slice(match[0].length);
  }
  return labels;
}

/** The value of the one sample with these labels. */
export function sampleValue(families: Map<string, Family>, name: string, labels: Record<string, string | number>): number | undefined {
  const wanted = Object.entries(labels);
  const found =
    families.get(name)?.samples.filter((sample) => wanted.every(([label, value]) => sample.labels[label] === String(value))) ?? [];
  if (found.length > 1) throw new Error(`${found.length} samples of ${name} fit`);
  return found[0]?.value;
}
