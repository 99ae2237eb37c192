// Parameters for the ranks of a bench.

/** The options of `multirail run` for entries 'NAME VALUE', as benches take them in --mca. */
export const mcaArgs = (entries) => entries.flatMap((entry) => ['--mca', ...entry.split(' ')]);
