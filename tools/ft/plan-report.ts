// `multirail ft plan`: the plan in words, and its curve of cost against period.
import { type HierarchicalModel, overheadOf, shortestPeriod } from '../../src/ft/plan/hierarchical.ts';
import type { Plan, PlanInput, PlannedPattern } from '../../src/ft/plan/plan.ts';
import { curveOf, curvePlot, MARK_COLORS } from './curve-plot.ts';
import { columns, percent } from './papers.ts';

/** A time for people: 90 s, 12.5 min, 3.2 h. */
export function timeText(seconds: number): string {
  if (seconds < 120) return `${Number(seconds.toPrecision(4))} s`;
  if (seconds < 7200) return `${(seconds / 60).toFixed(1)} min`;
  return seconds < 172_800 ? `${(seconds / 3600).toFixed(1)} h` : `${(seconds / 86_400).toFixed(1)} d`;
}

const UNITS = ['bytes', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'];
/** A size for people. */
export function sizeText(bytes: number): string {
  let unit = 0;
  let value = bytes;
  while (value >= 1024 && unit < UNITS.length - 1) {
    value /= 1024;
    unit++;
  }
  return `${Number(value.toFixed(unit === 0 ? 0 : 2))} ${UNITS[unit]}`;
}

function patternLine(name: string, { workSeconds, counts, periodSeconds, overhead }: PlannedPattern): string[] {
  const saves = counts.map((count, i) => `${Number(count.toFixed(2))} of level ${i + 1} every ${timeText(periodSeconds[i])}`);
  return [name, timeText(workSeconds), saves.join(', '), percent(overhead)];
}

export function planLines({ levels, pattern, wholePattern, copies }: Plan): string[] {
  const lines = [
    'Each level by itself: time between two saves, and the share of the run that saves, restores and repeated work cost',
    ...columns([
      ['level', 'MTBF', 'save', 'restore', 'Young', '', 'Daly', '', 'hierarchical', '', 'longest'],
      ...levels.map(({ mtbfSeconds, costSeconds, restoreSeconds, longestSeconds, young, daly, hierarchical }, i) => [
        String(i + 1),
        timeText(mtbfSeconds),
        timeText(costSeconds),
        timeText(restoreSeconds),
        ...[young, daly, hierarchical].flatMap(({ periodSeconds, overhead }) => [timeText(periodSeconds), percent(overhead)]),
        timeText(longestSeconds),
      ]),
    ]),
  ];
  if (levels.length > 1) {
    lines.push(
      '',
      'All levels together (paper 002): work between two saves of the highest level, the saves in it, and what they cost per second of work',
      ...columns([patternLine('as in the paper', pattern), patternLine('in whole saves', wholePattern)]),
    );
  }
  if (copies !== undefined) {
    const { scheme, guaranteed, exact, images, bytesPerProcess, domainsNeeded } = copies;
    lines.push(
      '',
      `Copies in memory (paper 000): ${scheme.duplication} on other domains, ${scheme.depth} save${scheme.depth === 1 ? '' : 's'} kept, ${scheme.domains} domains`,
      `  survives ${exact ?? guaranteed} failed domain${(exact ?? guaranteed) === 1 ? '' : 's'} at once, whichever they are${exact === undefined ? ' (by formula)' : ' (by searching all sets)'}`,
      `  room for ${images} images in each process${bytesPerProcess === undefined ? '' : `: ${sizeText(bytesPerProcess)}`}, with a slot for the save in the making`,
    );
    if (scheme.domains < domainsNeeded)
      lines.push(
        `  formula (2) needs ${domainsNeeded} domains for this scheme, and would say ${(scheme.duplication - 1) * scheme.depth + 1}`,
      );
  }
  return lines;
}

/** The curve of each level with the periods of the models. */
export function planSvg(input: PlanInput, plan: Plan, commandLine: string): Promise<string> {
  const { groups = 1, alpha = 0, rho = 1, lambda = 1, beta = 0 } = input.hierarchical ?? {};
  return curvePlot({
    title: 'What saves and failures cost against the time between saves',
    subtitle: `${groups === 1 ? 'one group' : `${groups} groups, one after the other`}, α ${alpha}, ρ ${rho}, λ ${lambda}, β ${beta}`,
    panels: plan.levels.map(({ mtbfSeconds, costSeconds, restoreSeconds, longestSeconds, young, daly, hierarchical }, i) => {
      const model: HierarchicalModel = { mtbfSeconds, costSeconds, restoreSeconds, groups, alpha, rho, lambda, beta };
      return {
        title: `Level ${i + 1}, MTBF ${timeText(mtbfSeconds)}, save ${timeText(costSeconds)}: cost (%)`,
        curve: curveOf(shortestPeriod(model), longestSeconds, (period) => 100 * overheadOf(period, model)),
        marks: [
          { ...young, name: 'Young', color: MARK_COLORS.young },
          { ...daly, name: 'Daly', color: MARK_COLORS.daly },
          { ...hierarchical, name: 'ours', color: MARK_COLORS.ours },
        ].map(({ periodSeconds, name, color }) => ({
          x: periodSeconds,
          // Where that period lies on this curve: alone, it was judged without groups.
          y: 100 * overheadOf(Math.max(periodSeconds, shortestPeriod(model)), model),
          text: `${name} ${timeText(periodSeconds)}`,
          color,
        })),
        dots: [],
      };
    }),
    foot: [commandLine],
  });
}
