// Writes docs/reference/parameters.md from the table of parameters (src/params.ts). `--check`: only says whether it is as the table is.
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';
import { build } from 'esbuild';

const root = new URL('..', import.meta.url).pathname;
const page = join(root, 'docs/reference/parameters.md');
const HEAD = `# Parameters

Written by \`npm run docs\` from the rows that stand in \`params.ts\` beside what they rule; change those. How parameters are set, and which one to
set for what: [tuning.md](../guide/tuning.md). Whole numbers take \`k\`, \`m\`, \`g\` (powers of 1024); lists are separated by commas.
`;
const LEVELS = {
  user: ['For users', 'What a program or a network may ask for.'],
  tuner: ['For tuning', 'Sizes, thresholds and times; they are well as they are on most machines.'],
  developer: ['For work on multirail', 'What its tests and its authors turn. Programs leave these alone.'],
};

const { outputFiles } = await build({
  entryPoints: [join(root, 'src/params.ts')],
  bundle: true,
  write: false,
  format: 'esm',
  platform: 'node',
});
const code = `data:text/javascript;base64,${Buffer.from(outputFiles[0].contents).toString('base64')}`;
const { PARAM_GROUPS, OLD_PARAM_NAMES } = await import(code);

const shownDefault = ({ kind, default: value }) => (kind === 'int' ? String(value) : value === '' ? 'empty' : `\`${value}\``);
function row(name, spec) {
  const range = spec.kind === 'int' ? ` From ${spec.min} to ${spec.max}.` : spec.choices === undefined ? '' : ` One of ${spec.choices.join(', ')}.`;
  return `| \`${name}\` | ${shownDefault(spec)} | ${spec.kind === 'int' ? spec.unit : spec.kind} | ${spec.text}${range} |`;
}

const lines = [HEAD];
for (const [level, [title, sentence]] of Object.entries(LEVELS)) {
  lines.push(`## ${title}`, '', sentence, '');
  for (const [group, rows] of Object.entries(PARAM_GROUPS)) {
    const own = Object.entries(rows).filter(([, spec]) => spec.level === level);
    if (own.length === 0) continue;
    lines.push(`### ${group}, ${title.toLowerCase()}`, '', '| parameter | default | unit | what it does |', '| --- | --- | --- | --- |');
    lines.push(...own.map(([name, spec]) => row(name, spec)), '');
  }
}
lines.push('## Names of before', '', 'They go on working for one release, with a warning.', '', '| before | now |', '| --- | --- |');
lines.push(...Object.entries(OLD_PARAM_NAMES).map(([before, now]) => `| \`${before}\` | \`${now}\` |`), '');
const text = lines.join('\n');

if (!process.argv.includes('--check')) writeFileSync(page, text);
else if (!existsSync(page) || readFileSync(page, 'utf8') !== text) {
  console.log('docs/reference/parameters.md is not what src/params.ts says: npm run docs');
  process.exit(1);
}
